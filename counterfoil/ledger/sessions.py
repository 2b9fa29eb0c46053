"""Sessions: one row a process, one heartbeat, and by it the lease of everything that the process holds.

A session whose lease is over is dead for good: a heartbeat does not revive it, since its work may have been taken over.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, insert, update

from counterfoil.ledger.tables import ledger_time, worker


def open_session(connection: Connection, role: str, name: str, lease: timedelta, capable: Mapping[str, Any] | None = None) -> int:
    """A new session of a `worker`, `relay` or `reconciler`; answers its number."""
    statement = (
        insert(worker)
        .values(
            role=role,
            name=name,
            started_at=ledger_time,
            heartbeat_at=ledger_time,
            lease_until=ledger_time + lease,
            capable=dict(capable) if capable is not None else None,
        )
        .returning(worker.c.id)
    )
    return int(connection.execute(statement).scalar_one())


def heartbeat(connection: Connection, session: int, lease: timedelta) -> datetime | None:
    """Renews the lease; answers its new end by the ledger's clock, or None where it is over and the session must leave."""
    statement = (
        update(worker)
        .where(worker.c.id == session, worker.c.stopped_at.is_(None), worker.c.lease_until > ledger_time)
        .values(heartbeat_at=ledger_time, lease_until=ledger_time + lease)
        .returning(worker.c.lease_until)
    )
    return connection.execute(statement).scalar_one_or_none()


def close_session(connection: Connection, session: int) -> None:
    """Ends the lease at once: what the session still holds is due now."""
    connection.execute(
        update(worker)
        .where(worker.c.id == session, worker.c.stopped_at.is_(None))
        .values(stopped_at=ledger_time, lease_until=ledger_time)
    )
