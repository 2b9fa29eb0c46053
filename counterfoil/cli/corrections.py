"""`counterfoil dlq fix`: a quarantined operation's payload gets a new revision. It prints differences through the mask only."""

from pathlib import Path
from typing import Annotated, Any
from uuid import UUID

import orjson
import typer
from rich.console import Console

from counterfoil.cli.answer import AsJson, answer
from counterfoil.cli.choosing import Why, need
from counterfoil.cli.options import an_id, ledger_connection
from counterfoil.cli.shown import cell
from counterfoil.core.acts import Action
from counterfoil.core.roles import ACTS
from counterfoil.settings import load_operations, read_settings

Patch = Annotated[
    Path, typer.Option("--patch", metavar="FILE", help="JSON with the fields to change, and nothing else; - is standard input.")
]
Seen = Annotated[
    int | None, typer.Option("--revision", min=1, help="The revision that you have read; refused if there is a newer.")
]


def fix(
    operation_id: Annotated[UUID, typer.Argument(parser=an_id, metavar="OPERATION_ID")],
    patch: Patch,
    reason: Why,
    revision: Seen = None,
    json: AsJson = False,
) -> None:
    """Correct a quarantined operation's payload: a new revision, checked as enqueue checks. Sends nothing: `dlq plan` is next."""
    from counterfoil.ledger.names import ledger_of
    from counterfoil.streams.dead_letters.correcting import Corrector

    changes = _read_patch(patch)
    settings = read_settings()
    operations = load_operations(settings.operations)
    with ledger_connection(settings) as connection:
        need(connection, ACTS[Action.FIX])
        corrector = Corrector(ledger_of(connection), settings, operations)
        done = corrector.correct(connection, operation_id, changes, seen=revision, reason=reason)

    def words(console: Console) -> None:
        console.print(cell(f"{operation_id} has revision {done.revision}; it is still quarantined"))
        for one in done.changed:
            console.print(cell(f"  {one['path']}: {one['before']} → {one['after']}"))
        console.print(cell(f"next: counterfoil dlq plan --id {operation_id} --reason WHY"))

    answer({"operation_id": operation_id, "revision": done.revision, "changed": done.changed}, words, json=json)


def _read_patch(patch: Path) -> Any:
    """The JSON object of a file; the error says neither its text nor where in it."""
    try:
        raw = typer.get_binary_stream("stdin").read() if str(patch) == "-" else patch.read_bytes()
        found = orjson.loads(raw)
    except OSError:
        raise typer.BadParameter("the file cannot be read", param_hint="--patch") from None
    except orjson.JSONDecodeError:
        raise typer.BadParameter("it is no JSON", param_hint="--patch") from None
    if not isinstance(found, dict):
        raise typer.BadParameter("one JSON object is needed, with the fields to change", param_hint="--patch")
    return found
