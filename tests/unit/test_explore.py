"""A sample of the search of the core: a small configuration of each kind of sink, and every named trace that is cheap."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.explore import topic
from tests.explore.cases import REAL, Case, single
from tests.explore.configuration import KINDS, Configuration
from tests.explore.life import Life
from tests.explore.row import Broken
from tests.explore.search import Search
from tests.explore.simulator import live

#: Cases whose search with the rule in place takes longer than a unit test may; `make explore` has them.
LONG = frozenset({"H3"})


@pytest.mark.parametrize("kind", KINDS)
def test_no_road_of_one_operation_breaks_an_invariant(kind: str) -> None:
    """S1, S2, S3, S8, S9, S10, S11, S13, S22, L1: every reachable state, with a cancel."""
    found = Search(Configuration(kind, KINDS[kind], cancels=True), REAL).run()
    assert found.violation is None, found.trace
    assert found.states > 50


@pytest.mark.parametrize(
    "case", [case for case in single() if case.name not in LONG], ids=lambda case: f"{case.name} {case.rule}"
)
def test_each_named_trace_is_found_without_its_rule(case: Case) -> None:
    """T1 to T9, T12, H5: the search sees the guard."""
    found = Search(case.bent or case.configuration, case.without, case.wanted).run()
    assert found.violation is not None
    assert case.wanted(found.violation)


@pytest.mark.parametrize("careless", [False, True])
def test_the_compacted_topic_ends_with_the_last_row_only_by_its_rule(careless: bool) -> None:
    """H2, S16."""
    assert (topic.search(careless=careless).violation is not None) == careless


def test_a_search_that_finds_something_tells_the_shortest_way_to_it() -> None:
    """An admission that forgets the tries is found in as many steps as it takes, and no more."""
    case = next(case for case in single() if case.rule == "tries are bounded")
    found = Search(replace(case.configuration, cancels=False), case.without, case.wanted).run()
    assert found.trace[-1].startswith("admit 3")


def test_no_life_of_the_simulator_breaks_an_invariant() -> None:
    """S1, S2, S3, S8 to S11, S13, S22, L1, L4: with real durations, due times and back-offs; every kind of end was met."""
    lives = live(0, 1_500)
    assert lives.broken is None
    assert set(lives.ends) >= {"confirmed", "succeeded", "not_applicable", "quarantined", "compensated"}


@pytest.mark.parametrize("name", ["T1", "T2", "T8", "T9"])
def test_the_simulator_finds_a_missing_rule_and_plays_its_seed_again(name: str) -> None:
    """The seed that it prints leads to the same fault, event by event."""
    core = next(case.without for case in single() if case.name == name)
    found = live(0, 1_000, core).broken
    assert found is not None
    seed, invariant, words = found
    told = []
    for _ in range(2):
        with pytest.raises(Broken) as broken:
            Life(seed, core).run()
        assert (broken.value.invariant, broken.value.words) == (invariant, words)
        told.append(broken.value.log)
    assert told[0] == told[1]
