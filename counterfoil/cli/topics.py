"""`counterfoil topics plan | apply | verify`: the declared types' topics, held against the brokers'. Only `apply` changes any.

No command ever deletes a topic or changes a partition count.
"""

from dataclasses import asdict
from typing import TYPE_CHECKING

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from counterfoil.cli.answer import AsJson, answer
from counterfoil.cli.exits import Exit
from counterfoil.cli.trouble import Trouble
from counterfoil.core.operation_type import Operations
from counterfoil.settings import Settings, load_operations, read_settings

if TYPE_CHECKING:
    from counterfoil.streams.topics.plan import Step

app = typer.Typer(no_args_is_help=True)

EMBEDDED = "the embedded broker shows no topic settings, makes topics by itself and compacts none"
COLOURS = {"create": "green", "alter": "yellow", "keep": "dim", "by_hand": "red"}


def _read() -> tuple[Settings, Operations]:
    settings = read_settings()
    if settings.embedded:
        what = f"Nothing to plan, apply or verify: {EMBEDDED}."
        raise Trouble("embedded", what, "Name real brokers, and unset `embedded`.", Exit.REFUSED)
    return settings, load_operations(settings.operations)


@app.command()
def plan(json: AsJson = False) -> None:
    """Show what `apply` would do, topic by topic; changes nothing."""
    from counterfoil.streams.topics import plan as topics

    _steps(topics.plan(*_read()), json=json)


@app.command()
def apply(json: AsJson = False) -> None:
    """Make the topics that are missing, alter settings that differ, accept the partition counts. Safe to repeat."""
    from counterfoil.streams.topics import plan as topics

    _steps(topics.apply(*_read()), json=json)


@app.command()
def verify(json: AsJson = False) -> None:
    """Look whether every topic is as it should be; exit 1 where one is not."""
    from counterfoil.streams.topics import plan as topics

    found = topics.verify(*_read())
    wrong = [flaw for flaw in found if flaw.code != "unseen"]

    def words(console: Console) -> None:
        for flaw in found:
            console.print(Text.assemble((flaw.topic, "red" if flaw.serious else "yellow"), f" {flaw.what} → {flaw.todo}"))
        if not found:
            console.print("every topic is as it should be")

    answer({"ok": not wrong, "flaws": [asdict(flaw) for flaw in found]}, words, json=json)
    raise typer.Exit(int(Exit.REFUSED if wrong else Exit.OK))


def _steps(steps: "list[Step]", *, json: bool) -> None:
    def words(console: Console) -> None:
        table = Table.grid(padding=(0, 2))
        for step in steps:
            table.add_row(Text(step.act.replace("_", " "), style=COLOURS[step.act]), Text(step.topic), Text(step.what))
        console.print(table)

    answer({"steps": [asdict(step) for step in steps]}, words, json=json)
