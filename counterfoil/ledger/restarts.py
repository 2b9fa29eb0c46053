"""When the database was started: what a sweeper must know before it calls a silent worker dead."""

from datetime import datetime

from sqlalchemy import Connection, text

_STARTED = text("SELECT pg_postmaster_start_time() AS started, counterfoil.ledger_time() AS now")


def database_started(connection: Connection) -> tuple[datetime, datetime]:
    """When the server was started, and the ledger's time now."""
    row = connection.execute(_STARTED).one()
    return row.started, row.now
