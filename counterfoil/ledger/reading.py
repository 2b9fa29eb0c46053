"""Reading operations for people: pages of a list, one operation whole, and its history. It changes nothing.

Nothing here holds a payload, an entity or the bytes of a record, so nothing that is printed from it can.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, Select, select, text

from counterfoil.core.errors import Refused
from counterfoil.core.reasons import Reason
from counterfoil.core.shards import shard
from counterfoil.core.standing import Standing
from counterfoil.core.states import State
from counterfoil.ledger.moves import standing_of
from counterfoil.ledger.statements import reading as statements
from counterfoil.ledger.tables import ledger_time, operation

LONGEST_READ = timedelta(seconds=30)  #: past it a read is given up: a filter without an index must not hold the database


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a list is narrowed to; everything empty means all."""

    states: tuple[State, ...] = ()
    types: tuple[str, ...] = ()
    older_than: timedelta | None = None  #: since it was accepted
    newer_than: timedelta | None = None
    correlation_id: str | None = None


@dataclass(frozen=True, slots=True)
class Line:
    """One operation in a list."""

    number: int
    operation_id: UUID
    type: str
    created_at: datetime
    state: str
    attempt: int
    tries_left: int
    reason: str
    due_at: datetime | None
    closed_at: datetime | None
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class Page:
    """Newest first; `following` is what to hand in as `before` for the next page, None at the end."""

    lines: Sequence[Line]
    following: int | None


@dataclass(frozen=True, slots=True)
class Whole(Line):
    """All that is shown of one operation."""

    version: str | None
    correlation_id: str | None
    traceparent: str | None
    sequence: int
    revision: int
    generation: int
    outcome: str | None
    doubtful_since: datetime | None
    attempt_until: datetime | None
    session: int | None
    cancel_asked: bool
    not_before: datetime | None
    record_road: str | None
    record_partition: int | None
    record_offset: int | None
    remote_id: str | None
    remote_version: str | None
    result_key: str | None
    now: datetime  #: the ledger's time of this reading


@dataclass(frozen=True, slots=True)
class Event:
    ordinal: int
    at: datetime
    kind: str
    state: str
    attempt: int
    reason: str
    detail: dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class Published:
    kind: str
    partition: int
    record_offset: int
    at: datetime
    outbox_id: int


@dataclass(frozen=True, slots=True)
class Unpublished:
    kind: str
    created_at: datetime
    outbox_id: int


@dataclass(frozen=True, slots=True)
class Unsendable:
    kind: str
    reason: str
    size: int  #: bytes
    at: datetime


@dataclass(frozen=True, slots=True)
class Raw:
    """A Kafka record that was kept raw and names the operation."""

    cause: UUID
    status: str
    reason: str
    topic: str
    partition: int
    record_offset: int
    at: datetime
    due_at: datetime


@dataclass(frozen=True, slots=True)
class History:
    """What happened to one operation, as far as the ledger keeps it."""

    events: Sequence[Event]
    published: Sequence[Published]
    unpublished: Sequence[Unpublished]
    unsendable: Sequence[Unsendable]
    raw: Sequence[Raw]


@dataclass(frozen=True, slots=True)
class Passed:
    """The first offset commit that passed a record."""

    topic: str
    partition: int
    record_offset: int
    at: datetime
    session: int


def bounded(connection: Connection) -> None:
    """Give this transaction's reads up after `LONGEST_READ`."""
    connection.execute(text(f"SET LOCAL statement_timeout = {int(LONGEST_READ.total_seconds() * 1000)}"))


def page(connection: Connection, wanted: Wanted, *, limit: int, before: int | None = None) -> Page:
    """One page of the list, by key and not by offset: lines that come in between move nothing."""
    asked: Select[Any] = statements.lines()
    if wanted.states:
        asked = statements.in_states(asked, wanted.states)
    if wanted.types:
        asked = asked.where(operation.c.type.in_(wanted.types))
    if wanted.older_than is not None:
        asked = statements.older_than(asked, wanted.older_than)
    if wanted.newer_than is not None:
        asked = statements.newer_than(asked, wanted.newer_than)
    if wanted.correlation_id is not None:
        asked = asked.where(operation.c.correlation_id == wanted.correlation_id)
    if before is not None:
        asked = asked.where(operation.c.number < before)
    found = [Line(*row) for row in connection.execute(asked.limit(limit + 1))]
    return Page(found[:limit], found[limit - 1].number if len(found) > limit else None)


def whole(connection: Connection, operation_id: UUID) -> Whole:
    """One operation. Raises Refused where the ledger has none of this id."""
    row = connection.execute(statements.one(operation_id)).one_or_none()
    if row is None:
        raise Refused(Reason.UNKNOWN_OPERATION, subject=str(operation_id))
    return Whole(*row)


def standing_at(connection: Connection, number: int) -> Standing:
    """What a decision about it would be taken on now; not locked, so none may be."""
    return standing_of(connection.execute(statements.standing(number)).one())


def history(connection: Connection, of: Whole) -> History:
    """Events in order, records published and waiting, and what was moved aside."""
    entity = connection.execute(statements.entity_of(of.number)).scalar_one()
    shards = sorted({shard(entity.encode()), shard(str(of.operation_id).encode())})
    return History(
        [Event(*row) for row in connection.execute(statements.events_of(of.number, of.created_at))],
        [Published(*row) for row in connection.execute(statements.published_of(of.number, of.created_at))],
        [Unpublished(*row) for row in connection.execute(statements.unpublished_of(of.number, shards))],
        [Unsendable(*row) for row in connection.execute(statements.refused_of(of.number))],
        [Raw(*row) for row in connection.execute(statements.raw_of(of.number))],
    )


def passed(connection: Connection, places: Sequence[tuple[str, int, int]], since: datetime) -> Sequence[Passed]:
    """For each (topic, partition, offset) that the group has passed: when, and in which session."""
    if not places:
        return []
    return [Passed(*row) for row in connection.execute(statements.acknowledged_after(places, since))]


def ledger_now(connection: Connection) -> datetime:
    """The ledger's time."""
    moment: datetime = connection.execute(select(ledger_time)).scalar_one()
    return moment
