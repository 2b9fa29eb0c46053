"""`counterfoil operations list | show | cancel`: what the ledger holds, read for people. Only `cancel` changes something.

It must never print a payload, an entity or a record's key.
"""

from dataclasses import asdict
from datetime import timedelta
from typing import Annotated, Any
from uuid import UUID

import typer
from rich.console import Console

from counterfoil.cli.answer import AsJson, InUtc, answer
from counterfoil.cli.exits import Exit
from counterfoil.cli.operation_list import print_list
from counterfoil.cli.operation_log import deliveries, entries
from counterfoil.cli.operation_view import View, as_data, as_words
from counterfoil.cli.options import an_id, ledger_connection, span
from counterfoil.cli.shown import cell
from counterfoil.core import reasons
from counterfoil.core.records import OperationId
from counterfoil.core.states import State
from counterfoil.core.transitions import Actor
from counterfoil.settings import Settings, read_settings

app = typer.Typer(no_args_is_help=True)

States = Annotated[list[State] | None, typer.Option("--state", help="Only these states; may be repeated.")]
Types = Annotated[list[str] | None, typer.Option("--type", help="Only these operation types; may be repeated.")]
Older = Annotated[timedelta | None, typer.Option(parser=span, metavar="SPAN", help='Accepted longer ago than this, like "2h".')]
Newer = Annotated[timedelta | None, typer.Option(parser=span, metavar="SPAN", help="Accepted since.")]
Correlation = Annotated[str | None, typer.Option("--correlation", help="Only this correlation_id.")]
Limit = Annotated[int, typer.Option(min=1, max=1000, help="Lines of one page.")]
Before = Annotated[int | None, typer.Option(help="Where the next page begins, as the page before says.")]
Id = Annotated[UUID, typer.Argument(parser=an_id, metavar="OPERATION_ID", help="As enqueue returned it.")]
Reason = Annotated[str, typer.Option("--reason", help="Who asked for it and why; kept with the act, so no secrets.")]


@app.command("list")
def list_(  # noqa: PLR0913 - each is one option of the command line
    state: States = None,
    type_: Types = None,
    older_than: Older = None,
    newer_than: Newer = None,
    correlation: Correlation = None,
    limit: Limit = 50,
    before: Before = None,
    utc: InUtc = False,
    json: AsJson = False,
) -> None:
    """List operations, newest first, a page at a time."""
    from counterfoil.ledger.held import count_unnamed
    from counterfoil.ledger.reading import Wanted, ledger_now, page

    wanted = Wanted(tuple(state or ()), tuple(type_ or ()), older_than, newer_than, correlation)
    with ledger_connection(read_settings()) as connection:
        found, now = page(connection, wanted, limit=limit, before=before), ledger_now(connection)
        unnamed = count_unnamed(connection, wanted.types)

    def words(console: Console) -> None:
        if found.lines:
            print_list(console, found.lines, now, utc=utc)
        else:
            console.print("no operation fits")
        if found.following is not None:
            console.print(f"more: --before {found.following}")
        if unnamed:
            console.print(f"also waiting for a person: {unnamed:,} held records without an operation (counterfoil held list)")

    told = {"operations": [asdict(line) for line in found.lines], "before": found.following}
    answer(told | {"held_without_operation": unnamed}, words, json=json)


def _view(connection: Any, settings: Settings, operation_id: UUID) -> View:
    from counterfoil.cli.operation_ahead import ahead_of
    from counterfoil.ledger.names import ledger_of
    from counterfoil.ledger.ordering import place_of
    from counterfoil.ledger.reading import history, passed, whole

    ledger = ledger_of(connection).name
    one = whole(connection, operation_id)
    told = history(connection, one)
    received = deliveries(told.events, ledger, one.type)
    acknowledged = passed(connection, sorted({delivery.place for delivery in received}), one.created_at)
    log = entries(told.events, received, acknowledged, told.published)
    return View(ledger, one, told, log, ahead_of(connection, settings, one), place_of(connection, one.number))


@app.command()
def show(operation_id: Id, utc: InUtc = False, json: AsJson = False) -> None:
    """Show one operation: state, attempts, cause, due, result, records, and its log in order."""
    settings = read_settings()
    with ledger_connection(settings) as connection:
        view = _view(connection, settings, operation_id)
    answer(as_data(view), lambda console: as_words(view, utc=utc, console=console), json=json)


DOUBTED = (
    "an earlier attempt may have been applied; it is looked up before anything is sent, and cancelled if nothing was applied"
)
DECIDED_FIRST = "it may have been applied and waits for a person, whom the cancel is shown; until somebody decides nothing moves"
#: What a cancel that is remembered means, by the state in which it met the operation.
ASKED = {
    State.QUEUED: DOUBTED,
    State.RETRY_WAIT: DOUBTED,
    State.RUNNING: "an attempt is running; the cancel is honoured once it is certain that nothing was applied",
    State.AWAITING_CONFIRMATION: "it may have been applied; the cancel is honoured once it is certain that nothing was",
    State.MANUAL_REVIEW: DECIDED_FIRST,
    State.QUARANTINED: DECIDED_FIRST,
}
SAID = {
    "now": "cancelled: it is not_applicable",
    "too_late": "too late: its effect has succeeded, or it is final; nothing was changed",
}


@app.command()
def cancel(operation_id: Id, reason: Reason, json: AsJson = False) -> None:
    """Cancel an operation: NOW where nothing was sent, ASKED where it may have been, TOO_LATE where it is over (exit 1)."""
    from counterfoil.callers import cancel_as

    if not reason.strip():
        missing = reasons.Reason.REASON_MISSING
        raise typer.BadParameter(f"{missing.sentence}. {missing.advice}", param_hint="--reason")
    with ledger_connection(read_settings()) as connection:
        result, met = cancel_as(Actor.PERSON, connection, OperationId(operation_id), reason=reason)
    sentence = f"asked for: {ASKED[met]}" if result.value == "asked" else SAID[result.value]
    answer(
        {"operation_id": operation_id, "cancelled": result.value, "what": sentence},
        lambda console: console.print(cell(f"{operation_id}: {sentence}")),
        json=json,
    )
    if result.value == "too_late":
        raise typer.Exit(Exit.REFUSED)
