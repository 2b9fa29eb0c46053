"""Reading held records for people and for the sweeper: pages, groups by reason, one, and those that name no operation.

It changes nothing, and a line holds no byte of a record: those are `quarantine.raw_records`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import Connection, Select, and_, case, func, or_, select, text, tuple_
from sqlalchemy.sql.elements import ColumnElement

from counterfoil.core.dead_letters import Chosen
from counterfoil.core.errors import Refused
from counterfoil.core.reasons import Reason
from counterfoil.ledger.raw_records import unpacked
from counterfoil.ledger.statements.holding import CAPABLE
from counterfoil.ledger.tables import operation
from counterfoil.ledger.tables_records import raw_record

#: Headers of a record that the sweeper looks at; ours are a tenth of it. More are for a person's act.
MOST_HEADERS = 65_536
#: So many without an operation are counted on a screen.
MOST_COUNTED = 1000


@dataclass(frozen=True, slots=True)
class Line:
    """One record in a list. `operation_id` None: the ledger has no operation for it. `status`: held, or what became of it."""

    cause: UUID
    status: str
    type: str
    reason: str
    topic: str
    partition: int
    offset: int
    operation_id: UUID | None
    number: int | None
    at: datetime
    due_at: datetime


@dataclass(frozen=True, slots=True)
class Page:
    """Newest first; `following` is the cause of the last line, for the next page; None at the end."""

    lines: Sequence[Line]
    following: UUID | None


@dataclass(frozen=True, slots=True)
class Group:
    """Held records of one type and reason."""

    type: str
    reason: str
    count: int
    without_operation: int
    first_at: datetime
    last_at: datetime


class Unnamed(NamedTuple):
    """A held record without an operation. `headers` None: it has none, or more than one looks at."""

    cause: UUID
    at: datetime
    headers: list[tuple[str, bytes | None]] | None


_LINE = (
    raw_record.c.id, raw_record.c.status, raw_record.c.type, raw_record.c.reason, raw_record.c.topic, raw_record.c.partition,
    raw_record.c.record_offset, operation.c.operation_id, raw_record.c.number, raw_record.c.at, raw_record.c.due_at,
)  # fmt: skip
_JOINED = raw_record.outerjoin(operation, operation.c.number == raw_record.c.number)
_HELD = raw_record.c.status == text("'held'")  # word for word as the indexes say it


def _named(ids: Sequence[UUID]) -> ColumnElement[bool]:
    """By cause, or by the operation."""
    numbers = select(operation.c.number).where(operation.c.operation_id.in_(ids))
    return or_(raw_record.c.id.in_(ids), raw_record.c.number.in_(numbers))


def fits(chosen: Chosen) -> ColumnElement[bool]:
    """The held records that a filter means."""
    wanted: list[ColumnElement[bool]] = [_HELD]
    if chosen.types:
        wanted.append(raw_record.c.type.in_(chosen.types))
    if chosen.reasons:
        wanted.append(raw_record.c.reason.in_(chosen.reasons))
    if chosen.since is not None:
        wanted.append(raw_record.c.at >= chosen.since)
    if chosen.until is not None:
        wanted.append(raw_record.c.at < chosen.until)
    if chosen.ids:
        wanted.append(_named(chosen.ids))
    return and_(*wanted)


def page(connection: Connection, chosen: Chosen, *, limit: int, before: UUID | None = None) -> Page:
    """A page of held records. Raises Refused where `before` is none of the ledger's records."""
    wanted = select(*_LINE).select_from(_JOINED).where(fits(chosen))
    if before is not None:
        last = connection.execute(select(raw_record.c.at).where(raw_record.c.id == before)).scalar_one_or_none()
        if last is None:
            raise Refused(Reason.UNKNOWN_HELD, subject=str(before))
        wanted = wanted.where(tuple_(raw_record.c.at, raw_record.c.id) < tuple_(last, before))
    wanted = wanted.order_by(raw_record.c.at.desc(), raw_record.c.id.desc()).limit(limit + 1)
    found = [Line(*row) for row in connection.execute(wanted)]
    return Page(found[:limit], found[limit - 1].cause if len(found) > limit else None)


def one(connection: Connection, name: UUID) -> Line:
    """The newest record of a cause or of an operation that is or was held. Raises Refused for an unknown one."""
    was_held = raw_record.c.status.in_(("held", "released", "over"))
    wanted = select(*_LINE).select_from(_JOINED).where(_named([name]), was_held)
    row = connection.execute(wanted.order_by(_HELD.desc(), raw_record.c.at.desc()).limit(1)).one_or_none()
    if row is None:
        raise Refused(Reason.UNKNOWN_HELD, subject=str(name))
    return Line(*row)


def is_capable(connection: Connection, cause: UUID) -> bool:
    """Whether a live worker says that it can do the record."""
    return bool(connection.execute(CAPABLE, {"h_cause": cause}).scalar_one())


def groups(connection: Connection, chosen: Chosen) -> list[Group]:
    """By type and reason, the most first."""
    unnamed = func.count().filter(raw_record.c.number.is_(None))
    key = (raw_record.c.type, raw_record.c.reason)
    counted: Select[Any] = select(*key, func.count(), unnamed, func.min(raw_record.c.at), func.max(raw_record.c.at))
    rows = connection.execute(counted.where(fits(chosen)).group_by(*key).order_by(func.count().desc(), *key))
    return [Group(*row) for row in rows]


def count_unnamed(connection: Connection, types: Sequence[str] = ()) -> int:
    """How many held records have no operation in the ledger, of these types or of all; at most MOST_COUNTED."""
    wanted = select(raw_record.c.id).where(_HELD, raw_record.c.number.is_(None))
    if types:
        wanted = wanted.where(raw_record.c.type.in_(types))
    found: int = connection.execute(select(func.count()).select_from(wanted.limit(MOST_COUNTED).subquery())).scalar_one()
    return found


def batch(
    connection: Connection, chosen: Chosen, *, cutoff: datetime, after: tuple[datetime, UUID] | None, limit: int
) -> list[Line]:
    """The next of a selection, oldest first; what was held after the cutoff is not in it."""
    wanted = select(*_LINE).select_from(_JOINED).where(fits(chosen), raw_record.c.at <= cutoff)
    if after is not None:
        wanted = wanted.where(tuple_(raw_record.c.at, raw_record.c.id) > tuple_(*after))
    return [Line(*row) for row in connection.execute(wanted.order_by(raw_record.c.at, raw_record.c.id).limit(limit))]


def unnamed(connection: Connection, *, after: tuple[datetime, UUID] | None, limit: int) -> list[Unnamed]:
    """The next held records without an operation, oldest first."""
    small = case((func.octet_length(raw_record.c.headers) <= MOST_HEADERS, raw_record.c.headers))
    wanted = select(raw_record.c.id, raw_record.c.at, small).where(_HELD, raw_record.c.number.is_(None))
    if after is not None:
        wanted = wanted.where(tuple_(raw_record.c.at, raw_record.c.id) > tuple_(*after))
    rows = connection.execute(wanted.order_by(raw_record.c.at, raw_record.c.id).limit(limit))
    return [Unnamed(cause, at, None if headers is None else unpacked(bytes(headers))) for cause, at, headers in rows]
