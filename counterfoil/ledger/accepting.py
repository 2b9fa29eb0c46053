"""Accepting operations in the caller's own transaction, and finding what was there before.

Nothing here commits. Rows go in the order of their ids, so that two callers with the same operations wait for each other instead
of deadlocking; the caller's own order is kept in the numbers that a Strict entity gives.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import Connection

from counterfoil.core.decisions import First
from counterfoil.core.identity import entity_id
from counterfoil.core.order import Ordering
from counterfoil.ledger.arrays import Array, columns, prepare
from counterfoil.ledger.names import Ledger
from counterfoil.ledger.statements.enqueueing import ACCEPTED, LOCK_TAILS, PLACED, THERE, accept


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
    ordering: Ordering = Ordering.UNORDERED


class There(NamedTuple):
    """An operation that the ledger held before: the keyed digest of its first content, and under which secret."""

    type: str
    digest: bytes
    secret_id: int
    same_bytes: bool  #: one of its revisions has exactly these bytes


_ACCEPT = {(ordering, sent): accept(ordering, sent=sent) for ordering in Ordering for sent in (True, False)}


def write(connection: Connection, ledger: Ledger, common: Common, rows: Sequence[Accepted]) -> set[UUID]:
    """Writes operations with distinct ids; answers the ids of those that were there before."""
    prepare(connection)
    first = common.first
    parameters = {
        **_rows(connection, ledger, common, rows),
        "e_type": common.type,
        "e_secret": ledger.secret_id,
        "e_correlation": common.correlation_id,
        "e_traceparent": common.traceparent,
        "e_state": str(first.state),
        "e_tries": first.tries_left,
        "e_not_before": common.not_before,
        "e_due": first.wait,
    }
    result = connection.execute(_ACCEPT[common.ordering, first.command], parameters)
    return set(result.scalars().all())


def _rows(connection: Connection, ledger: Ledger, common: Common, rows: Sequence[Accepted]) -> Mapping[str, Array]:
    """The rows as parameters. A Strict type's entities are locked first: whoever has the lock has the next numbers."""
    if common.ordering is Ordering.UNORDERED:
        return columns(ACCEPTED, sorted(rows, key=_order))
    latest = common.ordering is Ordering.LATEST_WINS
    lines = {entity: entity_id(ledger.name, common.type, entity) for entity in {row.entity for row in rows}}
    if not latest:
        connection.execute(LOCK_TAILS, {"e_line": Array(sorted(lines.values()))})
    placed = [
        (*row, lines[row.entity], int(row.version) if latest and row.version is not None else None, place)
        for place, row in enumerate(rows)
    ]
    return columns(ACCEPTED | PLACED, sorted(placed, key=_order))


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
