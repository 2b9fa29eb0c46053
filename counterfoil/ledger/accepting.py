"""Accepting operations in the caller's own transaction, and finding what was there before.

Nothing here commits. Rows go in the order of their ids, so that two callers with the same operations wait for each other instead
of deadlocking; the caller's order does not matter, since order within an entity is the ledger's own.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import Connection

from counterfoil.core.decisions import First
from counterfoil.ledger.arrays import columns, prepare
from counterfoil.ledger.names import Ledger
from counterfoil.ledger.statements.enqueueing import ACCEPTED, THERE, accept


class Accepted(NamedTuple):
    """One operation to accept, as its rows need it. The order of the fields is the statement's."""

    operation_id: UUID
    entity: str
    version: str | None
    digest: bytes  #: keyed digest of the content
    value: bytes  #: framed Avro
    value_hash: bytes  #: sha256 of `value`
    content: bytes  #: keyed digest of the accepted event
    shard: int
    key: bytes


class Common(NamedTuple):
    """What all operations of one call share."""

    type: str
    first: First
    not_before: datetime | None
    correlation_id: str | None
    traceparent: str | None


class There(NamedTuple):
    """An operation that the ledger held before: the keyed digest of its first content, and under which secret."""

    type: str
    digest: bytes
    secret_id: int
    same_bytes: bool  #: one of its revisions has exactly these bytes


_WITH_COMMAND = accept(sent=True)
_WITHOUT = accept(sent=False)


def write(connection: Connection, ledger: Ledger, common: Common, rows: Sequence[Accepted]) -> set[UUID]:
    """Writes operations with distinct ids; answers the ids of those that were there before."""
    prepare(connection)
    first = common.first
    parameters = {
        **columns(ACCEPTED, sorted(rows, key=_order)),
        "e_type": common.type,
        "e_secret": ledger.secret_id,
        "e_correlation": common.correlation_id,
        "e_traceparent": common.traceparent,
        "e_state": str(first.state),
        "e_tries": first.tries_left,
        "e_not_before": common.not_before,
        "e_due": first.wait,
    }
    result = connection.execute(_WITH_COMMAND if first.command else _WITHOUT, parameters)
    return set(result.scalars().all())


def _order(row: tuple[Any, ...]) -> int:
    """PostgreSQL's order of the ids."""
    return int(row[0].int)


def there(connection: Connection, rows: Sequence[Accepted]) -> Mapping[UUID, There]:
    """What the ledger holds under these ids. Ids that a concurrent transaction took back are left out."""
    asked = columns(["e_id", "e_hash"], [(row.operation_id, row.value_hash) for row in rows])
    return {
        row.operation_id: There(row.type, bytes(row.digest), row.digest_secret, row.same_bytes)
        for row in connection.execute(THERE, asked)
    }
