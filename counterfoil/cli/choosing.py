"""What the `dlq` commands share: the filter's options, the login's role, and an engine that is closed whatever happens."""

import contextlib
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Annotated
from uuid import UUID

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from sqlalchemy import Connection, Engine

from counterfoil.cli.options import an_id, span
from counterfoil.core.dead_letters import Chosen
from counterfoil.core.roles import Role
from counterfoil.settings import Settings


def an_instant(text: str) -> datetime:
    """A span ago, like "2h", or an instant with its zone."""
    with contextlib.suppress(typer.BadParameter):
        return datetime.now(UTC) - span(text)
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        found = None
    if found is None or found.utcoffset() is None:
        raise typer.BadParameter("a span ago, like 2h, or an instant with its zone, like 2026-03-01T12:00:00Z")
    return found


Types = Annotated[list[str] | None, typer.Option("--type", help="Only these operation types; may be repeated.")]
Reasons = Annotated[list[str] | None, typer.Option("--reason-code", help="Only these reason codes; may be repeated.")]
Fingerprint = Annotated[str | None, typer.Option("--fingerprint", help="Only this fingerprint, as --groups shows it.")]
Since = Annotated[
    datetime | None,
    typer.Option("--since", parser=an_instant, metavar="TIME", help="Quarantined since: a span ago, like 2h, or an instant."),
]
Until = Annotated[
    datetime | None,
    typer.Option("--until", parser=an_instant, metavar="TIME", help="Quarantined before: a span ago, or an instant."),
]
Entity = Annotated[str | None, typer.Option("--entity", help="Only this entity, exactly as it is written in the record's key.")]
Ids = Annotated[
    list[UUID] | None,
    typer.Option("--id", parser=an_id, metavar="ID", help="An operation_id, or the cause of a raw record; may be repeated."),
]
Why = Annotated[str, typer.Option("--reason", help="Why; kept with the act, so no secrets.")]


def chosen(
    types: list[str] | None,
    reasons: list[str] | None,
    fingerprint: str | None,
    times: tuple[datetime | None, datetime | None],
    entity: str | None,
    ids: list[UUID] | None = None,
) -> Chosen:
    """The filter that the options mean."""
    since, until = times
    return Chosen(tuple(types or ()), tuple(reasons or ()), fingerprint, since, until, entity, tuple(ids or ()))


@contextlib.contextmanager
def ledger_engine_of(settings: Settings, *, pool_size: int = 1) -> Iterator[Engine]:
    """The ledger's engine, for commands of more than one transaction."""
    from counterfoil.ledger.engine import ledger_engine

    engine = ledger_engine(settings.database, pool_size=pool_size)
    try:
        yield engine
    finally:
        engine.dispose()


def need(connection: Connection, role: Role) -> Role:
    """Refuses a login that has not this role, by the name of the database role that it needs."""
    from counterfoil.ledger.names import ledger_of
    from counterfoil.ledger.roles import require

    return require(connection, ledger_of(connection).name, role)


@contextlib.contextmanager
def bar(what: str, total: int | None, *, quiet: bool) -> Iterator[Progress]:
    """Progress on standard error; nothing where the answer is for programs."""
    columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), disable=quiet, transient=True) as progress:
        progress.add_task(what, total=total)
        yield progress
