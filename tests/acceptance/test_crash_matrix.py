"""A sample of `make crash`: cells of most steps, and two guards taken out, on the servers of this run."""

from __future__ import annotations

from pathlib import Path

import pytest

from counterfoil.parts import Kafka, Postgres
from tests.crash.bed import servers
from tests.crash.faults import SAMPLE, Fault
from tests.crash.matrix import line_of, line_of_guard, run_cells, run_guards
from tests.crash.scenes import GUARDS
from tests.support.planted import Planted

SEEN_WITHOUT = ("fence", "state-acknowledgement")


@pytest.mark.timeout(600)
def test_a_sample_of_the_crash_matrix_loses_and_doubles_nothing(
    postgres: Postgres, kafka: Kafka, tmp_path: Path, planted: Planted
) -> None:
    """S1 to S6, S8, S9, S12, S15, S16, S19, S22, L1, L2, L5: the same after a fault at any step as without one."""
    with servers(postgres, kafka, tmp_path, planted) as bed:
        results = run_cells(bed, SAMPLE, at_once=3)
    assert [line_of(result) for result in results if not result.good] == []
    assert {result.cell for result in results} == set(SAMPLE)
    assert {cell.fault for cell in SAMPLE} == set(Fault) - {Fault.BROKER}  # the broker is shared with other tests
    assert sum(result.verdict.lost + result.verdict.doubled for result in results) == 0


@pytest.mark.timeout(300)
def test_the_checker_of_the_crash_matrix_sees_a_guard_that_is_missing(
    postgres: Postgres, kafka: Kafka, tmp_path: Path, planted: Planted
) -> None:
    """S9, S16: a checker that finds nothing wrong in code without a guard would find nothing anywhere."""
    chosen = [guard for guard in GUARDS if guard.name in SEEN_WITHOUT]
    with servers(postgres, kafka, tmp_path, planted) as bed:
        told = [line_of_guard(one) for one in run_guards(bed, 2, chosen)]
    assert [line.partition("   ")[0] for line in told] == [f"guard {name} removed: caught" for name in SEEN_WITHOUT]
