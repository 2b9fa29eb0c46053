"""What a person sees: a progress bar on standard error, the account as a table, and its two last lines on standard output."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from counterfoil.core.states import State
from counterfoil.demo.account import Account

EMBEDDED = "brokers = embedded: librdkafka's mock cluster, which cannot show topic settings and cannot compact; not a real Kafka"
WIDEST_TABLE = 120  #: columns; a narrower screen would cut figures off
BEHAVIOURS = {
    "error_applied": "500 after applying",
    "answer_lost": "cut after applying",
    "slow": "answered too late",
    "rate_limit": "429",
}


class Bar:
    """The progress of a run."""

    def __init__(self, progress: Progress, operations: int) -> None:
        self._progress = progress
        self._task = progress.add_task("starting", total=operations, note="")

    def shows(self, what: str, settled: int = 0, note: str = "") -> None:
        self._progress.update(self._task, description=what, completed=settled, note=note)


@contextmanager
def progress(operations: int) -> Iterator[Bar]:
    """A bar on standard error; where that is no terminal, nothing but its last state."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[note]}", style="dim"),
    )
    with Progress(*columns, console=Console(stderr=True)) as shown:
        yield Bar(shown, operations)


def as_data(account: Account, more: dict[str, Any]) -> dict[str, Any]:
    """The object of --json; `lost` and `doubled` are its last two members."""
    return {
        "accepted": account.accepted,
        "types": {
            name: {
                "accepted": one.accepted,
                "states": one.states,
                "waiting_for_confirmation": one.waiting_for_confirmation,
                "in_journal": one.effects,
            }
            for name, one in account.types.items()
        },
        "waiting_for_confirmation": sum(one.waiting_for_confirmation for one in account.types.values()),
        "rolled_back": account.rolled_back,
        "rolled_back_yet_found": len(account.unwanted),
        "crm_misbehaved": {name: account.behaviours.get(name, 0) for name in BEHAVIOURS},
        **more,
        "lost": len(account.lost),
        "doubled": account.doubled,
    }


def table(account: Account) -> Table:
    """By type and in all: accepted, by state, waiting for confirmation, and what the journals say."""
    states = [state.value for state in State if any(state.value in one.states for one in account.types.values())]
    shown = Table(title="the callers' own list, the ledger's states, and the journals of the CRM and the store")
    shown.add_column("operation type", no_wrap=True)
    names = [state.replace("_", "_\n", 1) for state in states]  # a long name is broken where it has a seam
    for name in ("accepted", *names, "waiting for\nconfirmation", "in a\njournal"):
        shown.add_column(name, justify="right", no_wrap=True)
    rows = {
        name: [one.accepted, *(one.states.get(state, 0) for state in states), one.waiting_for_confirmation, one.effects]
        for name, one in account.types.items()
    }
    for name, row in rows.items():
        shown.add_row(name, *map(str, row))
    shown.add_section()
    shown.add_row("all", *(str(sum(column)) for column in zip(*rows.values(), strict=True)), style="bold")
    return shown


def tell(account: Account, more: dict[str, Any]) -> None:
    """The account in words; the last two lines are `lost n` and `doubled n`."""
    console = Console(highlight=False, soft_wrap=True)
    Console(highlight=False, width=max(console.width, WIDEST_TABLE)).print(table(account))
    met = ", ".join(f"{account.behaviours.get(name, 0)} × {words}" for name, words in BEHAVIOURS.items())
    console.print(f"the CRM misbehaved: {met}; it answered {more['repeats_answered']} repeats of a key with its first result")
    console.print(
        f"one worker was killed with SIGKILL half way: {more['left_open']} attempts that it left open were found by their lease"
    )
    console.print(
        f"{account.rolled_back} operations were rolled back by their callers on purpose; of these, {len(account.unwanted)} "
        "are in the ledger or in a journal"
    )
    if more["brokers"] == "embedded":
        console.print(EMBEDDED)
    if not more["at_rest"]:
        console.print("the deadline came first: not everything came to rest; the counts above say what is still open")
    console.print(f"lost {len(account.lost)}")
    console.print(f"doubled {account.doubled}")
