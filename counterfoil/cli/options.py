"""What commands share before they do anything: the ledger's connection, and spans and ids read from words."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from uuid import UUID

import typer
from sqlalchemy import Connection

from counterfoil.settings import Settings
from counterfoil.spellings import duration


@contextmanager
def ledger_connection(settings: Settings) -> Iterator[Connection]:
    """One transaction on the ledger, committed at the end; the connection is closed whatever happens."""
    from counterfoil.ledger.engine import ledger_engine
    from counterfoil.ledger.names import ledger_of
    from counterfoil.ledger.reading import bounded

    engine = ledger_engine(settings.database, pool_size=1)
    try:
        with engine.begin() as connection:
            bounded(connection)
            ledger_of(connection)
            yield connection
    finally:
        engine.dispose()


def span(text: str) -> timedelta:
    """A duration on the command line, like "30s" or "7d"."""
    try:
        return duration(text)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


def an_id(text: str) -> UUID:
    """An operation_id on the command line."""
    try:
        return UUID(text)
    except ValueError:
        raise typer.BadParameter("an operation_id is a UUID, as enqueue returns it") from None
