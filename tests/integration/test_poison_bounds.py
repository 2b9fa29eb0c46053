"""Values made to hurt are decoded in a process that may have 64 MiB beyond what it began with, and no more (design §7.2)."""

from __future__ import annotations

import subprocess
import sys

import orjson
import pytest

from counterfoil.bench import nasty
from counterfoil.core.errors import Undecodable
from tests.support.processes import ROOT, CommandLine

MOST_MIB = 64
LIMITED = f"""
import resource
from pathlib import Path
from counterfoil.bench.nasty import corpus
from counterfoil.core.errors import Undecodable
values = list(corpus())
has = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
limit = has + {MOST_MIB} * 2**20
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
for each in values:
    try:
        each.contract.decode(each.value)
        read = True
    except Undecodable:
        read = False
    print(each.fits == read, each.name)
try:
    bytearray({MOST_MIB + 8} * 2**20)
    print("there was no limit")
except MemoryError:
    print("limited")
"""


def test_no_record_needs_more_than_64_mib_before_it_is_refused_or_read() -> None:
    """D26, S23: recursive claims, billions of items, deep nesting, huge texts, blocks, maps, decimals and unions."""
    done = subprocess.run([sys.executable, "-c", LIMITED], capture_output=True, check=False, cwd=ROOT, timeout=120, text=True)
    assert done.returncode == 0, done.stderr
    *lines, last = done.stdout.splitlines()
    assert last == "limited"
    assert len(lines) == len(list(nasty.corpus()))
    assert [line for line in lines if not line.startswith("True ")] == []


def test_the_bench_of_poison_says_its_worst_values_and_leaves_with_1_over_a_bar(command_line: CommandLine) -> None:
    """D26: the bar of time is the bench's to judge, not this test's; memory and answers are the same on every machine."""
    told = command_line.run("bench", "poison", "--json", within=120, code=None)
    said = orjson.loads(told.stdout)
    assert said["bars"]["worst memory"]["holds"]
    assert said["bars"]["values read or refused against expectation"]["measured"] == 0
    assert told.code == (0 if all(bar["holds"] for bar in said["bars"].values()) else 1)
    assert {one["value"] for one in said["detail"]["values"]} == {each.name for each in nasty.corpus()}


@pytest.mark.parametrize("each", [one for one in nasty.corpus() if not one.fits], ids=lambda one: one.name)
def test_a_refusal_has_a_reason_and_no_value(each: nasty.Nasty) -> None:
    """D26, D52, S18."""
    with pytest.raises(Undecodable) as refused:
        each.contract.decode(each.value)
    assert refused.value.__context__ is None
    assert len(str(refused.value)) < 300
