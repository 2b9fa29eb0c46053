"""The command line: which commands there are and how they are grouped. Each group is a module of its own.

It imports no Kafka, no Faust and no database driver, so that `--help` is quick and works anywhere.
"""

import os
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import typer

from counterfoil.cli import dlq, held, operations, pausing, policies, processes, setting_up, sinks, topics, trial, type_list
from counterfoil.cli.absent_database import explained
from counterfoil.cli.answer import complain
from counterfoil.cli.exits import Exit
from counterfoil.core.errors import CounterfoilError
from counterfoil.settings import FILE_VARIABLE, read_settings

SETTING_UP, RUNNING, LOOKING, TRYING = "Setting up", "Running", "Looking and acting", "Trying out"
EPILOG = "Exit codes: " + "; ".join(f"{one.value} {one.name.lower()}" for one in Exit) + ". `counterfoil exits` explains them."

app = typer.Typer(
    name="counterfoil",
    help="Keeps one record for every effect that a program has on the world outside its database.",
    epilog=EPILOG,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

app.command(rich_help_panel=SETTING_UP)(setting_up.init)
app.command(rich_help_panel=SETTING_UP)(setting_up.check)
app.add_typer(topics.app, name="topics", help="Plan, make and verify the Kafka topics.", rich_help_panel=SETTING_UP)
app.command(rich_help_panel=RUNNING)(processes.relay)
app.command(rich_help_panel=RUNNING)(processes.worker)
app.add_typer(operations.app, name="operations", help="List, show and cancel operations.", rich_help_panel=LOOKING)
app.add_typer(dlq.app, name="dlq", help="List, show, correct, replay and discard dead letters.", rich_help_panel=LOOKING)
app.add_typer(held.app, name="held", help="List, show and release held records.", rich_help_panel=LOOKING)
app.add_typer(sinks.app, name="sinks", help="List, show and limit the sinks.", rich_help_panel=LOOKING)
app.add_typer(type_list.app, name="types", help="List the operation types.", rich_help_panel=LOOKING)
app.add_typer(policies.app, name="policy", help="Show the policy of an operation type.", rich_help_panel=LOOKING)
app.command(rich_help_panel=LOOKING)(pausing.pause)
app.command(rich_help_panel=LOOKING)(pausing.resume)
app.command(rich_help_panel=LOOKING)(setting_up.exits)
app.command(rich_help_panel=TRYING)(trial.demo)
app.command(rich_help_panel=TRYING)(trial.bench)

SettingsFile = Annotated[
    Path | None,
    typer.Option("--settings", metavar="FILE", help="TOML file to read; default COUNTERFOIL_FILE, else ./counterfoil.toml."),
]


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"counterfoil {version('counterfoil')}")
        raise typer.Exit


Version = Annotated[
    bool, typer.Option("--version", is_eager=True, callback=_version, help="Print the version, and nothing else.")
]


@app.callback()
def _all(settings: SettingsFile = None, version: Version = False) -> None:
    if settings is not None:
        os.environ[FILE_VARIABLE] = str(settings)


def _database() -> str | None:
    try:
        return read_settings().database
    except CounterfoilError:
        return None


def main(arguments: list[str] | None = None) -> None:
    """Run one command and leave with its exit code; whatever goes wrong is told without its text or traceback."""
    given = sys.argv[1:] if arguments is None else arguments
    try:
        app(args=given)
    except Exception as error:  # noqa: BLE001 - the outermost edge: every error ends here, sorted by class
        trouble = explained(error, _database())
        complain(trouble, json="--json" in given)
        sys.exit(int(trouble.exit))
