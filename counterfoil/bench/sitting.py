"""One sitting of the bench: the parts that were asked for, one after the other, and the object that they fill."""

import os
import platform
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

import orjson
import typer
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from counterfoil.bench import enqueueing, latency, relaying, working
from counterfoil.bench.figure import Figures
from counterfoil.bench.stage import Stage, processors, stage

ROUNDS = 3
Part = Callable[[Stage, int, int], Figures]
PARTS: Mapping[str, Part] = {
    "enqueue": enqueueing.enqueue,
    "enqueue_prepared": enqueueing.enqueue_ready,
    "relay": relaying.relay,
    "worker": working.worker,
    "worker_single": working.worker_single,
    "latency": latency.latency,
    "settled": latency.settled,
}
#: Not measured alone: it is what the processes of these parts held at most.
MEMORY = "memory"
MEASURES_MEMORY = ("relay", "worker")
NAMES = (*PARTS, MEMORY)
COLUMNS = ("per_s", "plain_per_s", "p50_ms", "p99_ms", "worker_mib", "relay_mib", "ratio")


def sitting(*, as_json: bool, only: Sequence[str], operations: int) -> int:
    """Runs the parts and prints what they found."""
    names = wanted(only)
    began = time.monotonic()
    results: Figures = {}
    with _progress() as progress, stage() as servers:
        task = progress.add_task("starting", total=len(names))
        for number, name in enumerate(names, 1):
            progress.update(task, description=f"{name} ({number} of {len(names)})")
            results |= PARTS[name](servers, operations, ROUNDS)
        if servers.peaks:
            results[MEMORY] = {f"{role}_mib": round(peak, 1) for role, peak in sorted(servers.peaks.items())}
    told = {
        "results": results,
        "operations": operations,
        "rounds": ROUNDS,
        **_place(),
        "seconds": round(time.monotonic() - began),
    }
    if as_json:
        typer.echo(orjson.dumps(told, option=orjson.OPT_INDENT_2).decode())
    else:
        _show(results)
    return 0


def wanted(only: Sequence[str]) -> list[str]:
    """The parts to run, in the order of the whole. ValueError for a name that is none."""
    asked = set(only)
    if not asked <= set(NAMES):
        raise ValueError(f"the parts are {', '.join(NAMES)}")
    if MEMORY in asked:
        asked |= set(MEASURES_MEMORY)
    return [name for name in PARTS if not asked or name in asked]


def _place() -> dict[str, Any]:
    """Where and when, as far as it explains a figure."""
    return {
        "counterfoil": version("counterfoil"),
        "python": platform.python_version(),
        "processors": processors(),
        "load_before": [round(load, 2) for load in os.getloadavg()],
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _progress() -> Progress:
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    return Progress(*columns, console=Console(stderr=True), transient=True)


def _show(results: Figures) -> None:
    table = Table()
    table.add_column("part")
    shown = [column for column in COLUMNS if any(column in figure for figure in results.values())]
    for column in shown:
        table.add_column(column, justify="right")
    for name, figure in results.items():
        table.add_row(name, *(_number(figure.get(column)) for column in shown))
    Console(highlight=False).print(table)


def _number(value: object) -> str:
    return "" if value is None else f"{value:,}"
