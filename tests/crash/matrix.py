"""The whole matrix: which cells, several at once, the broker's in waves; and what is printed of it."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from counterfoil.failpoints import PLACES
from counterfoil.parts import kafka as running_kafka
from counterfoil.parts import postgres as running_postgres
from tests.crash.bed import Restarts, Servers, servers
from tests.crash.faults import Cell, Fault, all_cells, why_never
from tests.crash.run import Result, run_cell
from tests.crash.scenes import GUARDS, Caught, Guard, run_guard
from tests.support.planted import Planted

WAVE = 4  #: cells that meet one restart of the broker
#: What must have been seen in a whole run, of states and events: a matrix that never got there proves nothing.
MUST_BE_SEEN = (
    "admitted",
    "result_saved",
    "retry_scheduled",
    "awaiting_confirmation",
    "quarantined",
    "redelivered",
    "sent_again",
    "reason lease_over",
    "reason no_probe_resend",
)
Say = Callable[[str], None]


@dataclass(frozen=True)
class Wish:
    """What was asked for."""

    cells: tuple[str, ...]
    at_once: int
    guards: bool
    folder: Path


def run(wish: Wish) -> int:
    """Run it, say everything, answer the exit code."""
    began = time.monotonic()
    whole = not wish.cells
    named = [guard for guard in GUARDS if wish.guards and (whole or f"guard={guard.name}" in wish.cells)]
    cells = [cell for cell in all_cells() if _wanted(cell, wish.cells)]
    if not cells and not named:
        _say("no such cell; the places are:")
        for name, sentence in PLACES.items():
            _say(f"  {name}  {sentence}")
        return 2
    with shared(wish.folder) as bed:
        results = run_cells(bed, cells, wish.at_once, _say)
        caught = run_guards(bed, wish.at_once, named)
    print_table(results, cells)
    wrong = sum(not result.good for result in results)
    blind = [one for one in caught if not one.caught]
    missing = print_counts(results, whole=whole)
    for one in caught:
        _say(line_of_guard(one))
    _say(f"{len(results)} cells, {wrong} wrong, {time.monotonic() - began:.0f} s")
    _say(f"lost {sum(result.verdict.lost for result in results)}")
    _say(f"doubled {sum(result.verdict.doubled for result in results)}")
    return 1 if wrong or blind or missing else 0


@contextmanager
def shared(folder: Path) -> Iterator[Servers]:
    """Servers for a whole run."""
    planted = Planted()
    with running_postgres() as postgres, running_kafka() as kafka, servers(postgres, kafka, folder, planted) as bed:
        yield bed


def run_cells(bed: Servers, cells: Sequence[Cell], at_once: int, say: Say = lambda _: None) -> list[Result]:
    """Every cell that can be: most of them several at once, those of the broker in waves behind them."""
    can_be = [cell for cell in cells if why_never(cell) is None]
    results = []
    with ThreadPoolExecutor(at_once) as pool:
        for done in as_completed([pool.submit(run_cell, bed, cell) for cell in can_be if cell.fault is not Fault.BROKER]):
            results.append(done.result())
            say(line_of(results[-1]))
    of_broker = [cell for cell in can_be if cell.fault is Fault.BROKER]
    for start in range(0, len(of_broker), WAVE):
        wave = of_broker[start : start + WAVE]
        restarts = Restarts(lambda: _restart(bed), len(wave))
        with ThreadPoolExecutor(len(wave)) as pool:
            for done in as_completed([pool.submit(run_cell, bed, cell, restarts) for cell in wave]):
                results.append(done.result())
                say(line_of(results[-1]))
    return results


def run_guards(bed: Servers, at_once: int, guards: Sequence[Guard] = GUARDS, *, removed: bool = True) -> list[Caught]:
    """The scene of each guard, without it."""
    with ThreadPoolExecutor(at_once) as pool:
        return list(pool.map(lambda guard: run_guard(bed, guard, removed=removed), guards))


def line_of_guard(one: Caught) -> str:
    """Whether the checker saw that it is missing, and what it said."""
    if one.caught:
        return f"guard {one.guard.name} removed: caught   ({one.verdict.violations[0][:100]})"
    return f"guard {one.guard.name} removed: NOT CAUGHT   ({one.trouble or 'all was well'})"


def _restart(bed: Servers) -> None:
    bed.kafka.kill()
    bed.kafka.start()


def line_of(result: Result) -> str:
    """One cell's line, with all that is wrong of it."""
    told = f"{'ok' if result.good else 'WRONG':5}  {result.cell}  {result.seconds:.0f} s"
    if not result.good:
        what = [result.trouble, *result.verdict.violations]
        told += "".join(f"\n       {each}" for each in what if each)
    return told


def print_table(results: Sequence[Result], cells: Sequence[Cell]) -> None:
    """The matrix: `ok`, `WRONG`, or `-` for a cell that cannot be."""
    by_cell = {result.cell: result for result in results}
    width = max(len(place) for place in PLACES) + 2
    _say("\n" + " " * width + "".join(f"{fault.value:9}" for fault in Fault))
    for place in PLACES:
        if not any(cell.place == place for cell in cells):
            continue
        marks = []
        for fault in Fault:
            result = by_cell.get(Cell(place, fault))
            marks.append("-" if result is None else "ok" if result.good else "WRONG")
        _say(f"{place:{width}}" + "".join(f"{mark:9}" for mark in marks))
    for cell in cells:
        if (why := why_never(cell)) is not None:
            _say(f"not run: {cell}: {why}")


def print_counts(results: Sequence[Result], *, whole: bool) -> list[str]:
    """Why the run is not vacuous; answers what a whole run should have seen and did not."""
    hit = {result.cell.place for result in results if result.hit}
    struck = Counter(result.cell.fault for result in results if result.struck)
    states: Counter[str] = sum((result.verdict.states for result in results), Counter())
    events: Counter[str] = sum((result.verdict.events for result in results), Counter())
    _say(f"\nfailpoints hit {len(hit)} of {len(PLACES)}")
    _say("faults applied " + ", ".join(f"{fault.value} {struck[fault]}" for fault in Fault))
    _say("operations at their end " + ", ".join(f"{state} {count}" for state, count in states.most_common()))
    _say("events " + ", ".join(f"{name} {events[name]}" for name in MUST_BE_SEEN))
    missing = [name for name in MUST_BE_SEEN if not events[name]] if whole else []
    missing += [name for name in PLACES if name not in hit] if whole else []
    if missing:
        _say("never seen: " + ", ".join(missing))
    return missing


def _wanted(cell: Cell, named: Sequence[str]) -> bool:
    return not named or cell.place in named or f"{cell.place}={cell.fault.value}" in named


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()
