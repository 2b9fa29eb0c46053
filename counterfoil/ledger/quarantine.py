"""Reading dead letters for people: pages, groups by cause, one with its revisions. It changes nothing.

Lines hold no payload and no entity. The bytes of a payload or of a raw record are read where they are asked for by name, by a
login that has the right, and are for decoding and masking, never for printing.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import Connection, func, null, select, tuple_

from counterfoil.core.dead_letters import Chosen
from counterfoil.core.errors import Refused
from counterfoil.core.reasons import Reason
from counterfoil.ledger.raw_records import unpacked
from counterfoil.ledger.statements import dead_letters as statements
from counterfoil.ledger.tables import payload
from counterfoil.ledger.tables_dead_letters import dead_letter, plan_item
from counterfoil.ledger.tables_records import raw_record


@dataclass(frozen=True, slots=True)
class Line:
    """One dead letter in a list: of an operation (`operation_id`), or of a raw record (`raw`, its cause's id)."""

    id: int
    number: int | None
    raw: UUID | None
    operation_id: UUID | None
    type: str
    reason: str
    fingerprint: str
    first_at: datetime
    at: datetime
    sequence: int
    revision: int
    replays: int
    replayed_at: datetime | None
    open: bool

    @property
    def name(self) -> UUID:
        """By which a person asks for it."""
        named = self.operation_id or self.raw
        assert named is not None
        return named


@dataclass(frozen=True, slots=True)
class Page:
    """Newest first; `following` is the id of the last line, for the next page; None at the end."""

    lines: Sequence[Line]
    following: int | None


@dataclass(frozen=True, slots=True)
class Group:
    """Dead letters of one cause."""

    type: str
    reason: str
    fingerprint: str
    count: int
    first_at: datetime
    last_at: datetime
    replayed_at: datetime | None


class Kept(NamedTuple):
    """A raw record's own bytes and where it was read."""

    id: UUID
    type: str
    number: int | None
    reason: str
    topic: str
    partition: int
    offset: int
    time: datetime | None  #: of the record, where it had one
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]


class Revision(NamedTuple):
    """One revision of a payload."""

    revision: int
    value: bytes
    created_at: datetime


def page(connection: Connection, chosen: Chosen, *, limit: int, before: int | None = None) -> Page:
    """A page of open dead letters. Raises Refused where `before` is none of them."""
    wanted = statements.lines(chosen)
    if before is not None:
        last = connection.execute(select(dead_letter.c.at, dead_letter.c.id).where(dead_letter.c.id == before)).one_or_none()
        if last is None:
            raise Refused(Reason.UNKNOWN_CAUSE, subject=str(before))
        wanted = wanted.where(tuple_(dead_letter.c.at, dead_letter.c.id) < tuple_(last.at, last.id))
    found = [Line(*row) for row in connection.execute(wanted.limit(limit + 1))]
    return Page(found[:limit], found[limit - 1].id if len(found) > limit else None)


def one(connection: Connection, name: UUID) -> Line:
    """A dead letter by its operation's id or its cause's id, open or not. Raises Refused for an unknown one."""
    row = connection.execute(statements.one(name)).first()
    if row is None:
        raise Refused(Reason.UNKNOWN_CAUSE, subject=str(name))
    return Line(*row)


def groups(connection: Connection, chosen: Chosen) -> list[Group]:
    """By type, reason and fingerprint, the most first."""
    return [Group(*row) for row in connection.execute(statements.groups(chosen))]


def count(connection: Connection, chosen: Chosen) -> int:
    """How many open dead letters a filter means."""
    found: int = connection.execute(select(func.count()).select_from(dead_letter).where(statements.fits(chosen))).scalar_one()
    return found


def revisions(connection: Connection, number: int) -> list[Revision]:
    """Every revision of an operation's payload, oldest first, with its bytes."""
    columns = (payload.c.revision, payload.c.value, payload.c.created_at)
    rows = connection.execute(select(*columns).where(payload.c.number == number).order_by(payload.c.revision))
    return [Revision(row.revision, bytes(row.value), row.created_at) for row in rows]


def raw_records(connection: Connection, ids: Sequence[UUID], *, values: bool = True) -> dict[UUID, Kept]:
    """Records kept raw, with their bytes, by cause; without `values` for many, whose values are not asked for."""
    columns = (
        raw_record.c.id, raw_record.c.type, raw_record.c.number, raw_record.c.reason, raw_record.c.topic,
        raw_record.c.partition, raw_record.c.record_offset, raw_record.c.record_time, raw_record.c.key,
        raw_record.c.value if values else null(), raw_record.c.headers,
    )  # fmt: skip
    rows = connection.execute(select(*columns).where(raw_record.c.id.in_(list(ids))))
    return {row.id: _kept(row) for row in rows}


def _kept(row: Any) -> Kept:
    key, value, headers = row[-3:]
    return Kept._make((*row[:-3], _bytes(key), _bytes(value), unpacked(bytes(headers or b""))))


def _bytes(value: Any) -> bytes | None:
    return None if value is None else bytes(value)


class InPlan(NamedTuple):
    """What a plan did with one dead letter."""

    plan: int
    status: str
    reason: str | None
    at: datetime | None


def plans_of(connection: Connection, number: int) -> list[InPlan]:
    """The plans that have acted on an operation, newest first."""
    columns = (plan_item.c.plan, plan_item.c.status, plan_item.c.reason, plan_item.c.at)
    acted = select(*columns).where(plan_item.c.number == number, plan_item.c.status != "waiting")
    return [InPlan(*row) for row in connection.execute(acted.order_by(plan_item.c.plan.desc()))]
