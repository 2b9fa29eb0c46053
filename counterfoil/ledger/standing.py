"""Reading where operations stand, for callers, in their own transaction."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, Row, Select, select

from counterfoil.core.records import Digest, OperationId, Receipt, Version
from counterfoil.core.states import State
from counterfoil.core.status import Status
from counterfoil.ledger.tables import operation, state

_ASKED = (
    select(
        operation.c.number,
        operation.c.operation_id,
        operation.c.type,
        state.c.state,
        state.c.closed_at,
        state.c.attempt,
        state.c.tries_left,
        state.c.reason,
        state.c.due_at,
        state.c.outcome,
        state.c.remote_id,
        state.c.remote_version,
        state.c.sink_time,
    )
).join(state, state.c.number == operation.c.number)


def number_of(connection: Connection, operation_id: UUID) -> int | None:
    """The number of an operation; None where the ledger has none of this id."""
    return connection.execute(select(operation.c.number).where(operation.c.operation_id == operation_id)).scalar_one_or_none()


def status_of(connection: Connection, operation_id: UUID) -> Status | None:
    """Where one operation stands."""
    found = _read(connection, _ASKED.where(operation.c.operation_id == operation_id))
    return found[0] if found else None


def statuses_of(connection: Connection, correlation_id: str) -> Sequence[Status]:
    """All operations of one correlation_id, in the order in which they were accepted."""
    return _read(connection, _ASKED.where(operation.c.correlation_id == correlation_id).order_by(operation.c.number))


def _read(connection: Connection, statement: Select[Any]) -> list[Status]:
    return [_status(row) for row in connection.execute(statement)]


def _status(row: Row[Any]) -> Status:
    return Status(
        operation_id=OperationId(row.operation_id),
        type=row.type,
        state=State(row.state),
        final=row.closed_at is not None,
        attempt=row.attempt,
        tries_left=row.tries_left,
        reason=row.reason,
        due_at=row.due_at,
        receipt=_receipt(row),
    )


def _receipt(row: Row[Any]) -> Receipt | None:
    if row.outcome != "done":
        return None
    return Receipt(row.remote_id, _version(row.remote_version), row.sink_time)


def _version(text: str | None) -> Version | None:
    if text is None:
        return None
    algorithm, colon, value = text.rpartition(":")
    return Digest(algorithm, bytes.fromhex(value)) if colon else int(text)
