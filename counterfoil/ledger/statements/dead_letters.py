"""Statements over dead letters: what a filter selects, pages, groups by cause, and freezing a selection into a plan.

They read the narrow index of dead letters and, for lines that are shown, the operations' ids; no payload and no entity. They
execute nothing.
"""

from typing import Any

from sqlalchemy import BigInteger, Select, and_, func, literal, literal_column, or_, select
from sqlalchemy.sql.elements import ColumnElement

from counterfoil.core.dead_letters import Chosen
from counterfoil.ledger.tables import operation
from counterfoil.ledger.tables_dead_letters import dead_letter, plan_item

LINE = (
    dead_letter.c.id,
    dead_letter.c.number,
    dead_letter.c.raw,
    operation.c.operation_id,
    dead_letter.c.type,
    dead_letter.c.reason,
    dead_letter.c.fingerprint,
    dead_letter.c.first_at,
    dead_letter.c.at,
    dead_letter.c.sequence,
    dead_letter.c.revision,
    dead_letter.c.replays,
    dead_letter.c.replayed_at,
    dead_letter.c.open,
)
_JOINED = dead_letter.outerjoin(operation, operation.c.number == dead_letter.c.number)


def fits(chosen: Chosen) -> ColumnElement[bool]:
    """The open dead letters that a filter means."""
    wanted: list[ColumnElement[bool]] = [dead_letter.c.open.is_(True)]
    if chosen.types:
        wanted.append(dead_letter.c.type.in_(chosen.types))
    if chosen.reasons:
        wanted.append(dead_letter.c.reason.in_(chosen.reasons))
    if chosen.fingerprint is not None:
        wanted.append(dead_letter.c.fingerprint == chosen.fingerprint)
    if chosen.since is not None:
        wanted.append(dead_letter.c.at >= chosen.since)
    if chosen.until is not None:
        wanted.append(dead_letter.c.at < chosen.until)
    if chosen.entity is not None:
        wanted.append(dead_letter.c.entity_hash == func.hashtextextended(chosen.entity, 0))
    if chosen.ids:
        numbers = select(operation.c.number).where(operation.c.operation_id.in_(chosen.ids))
        wanted.append(or_(dead_letter.c.number.in_(numbers), dead_letter.c.raw.in_(chosen.ids)))
    return and_(*wanted)


def lines(chosen: Chosen) -> Select[Any]:
    """Newest first."""
    return select(*LINE).select_from(_JOINED).where(fits(chosen)).order_by(dead_letter.c.at.desc(), dead_letter.c.id.desc())


def one(wanted: object) -> Select[Any]:
    """The dead letter of an operation, or of a raw record's cause; open or not any more."""
    numbers = select(operation.c.number).where(operation.c.operation_id == wanted)
    return select(*LINE).select_from(_JOINED).where(or_(dead_letter.c.number.in_(numbers), dead_letter.c.raw == wanted))


def groups(chosen: Chosen) -> Select[Any]:
    """Open dead letters by cause, the most first, with when one of the cause was last replayed."""
    counted = (
        select(
            dead_letter.c.type,
            dead_letter.c.reason,
            dead_letter.c.fingerprint,
            func.count().label("count"),
            func.min(dead_letter.c.at).label("first_at"),
            func.max(dead_letter.c.at).label("last_at"),
        )
        .where(fits(chosen))
        .group_by(dead_letter.c.type, dead_letter.c.reason, dead_letter.c.fingerprint)
        .subquery("counted")
    )
    other = dead_letter.alias("other")
    replayed = (
        select(func.max(other.c.replayed_at))
        .where(
            other.c.type == counted.c.type,
            other.c.reason == counted.c.reason,
            other.c.fingerprint == counted.c.fingerprint,
            other.c.replayed_at.is_not(None),
        )
        .scalar_subquery()
    )
    return select(counted, replayed.label("replayed_at")).order_by(counted.c.count.desc(), counted.c.type, counted.c.reason)


def frozen(plan: int, chosen: Chosen, *, after: int, position: int, cutoff: object, limit: int) -> Select[Any]:
    """Writes the next `limit` dead letters of a selection as items, in one statement; answers how many, the last id, a digest."""
    picked = (
        select(dead_letter.c.id, dead_letter.c.number, dead_letter.c.raw, dead_letter.c.sequence)
        .where(fits(chosen), dead_letter.c.id > after, dead_letter.c.at <= cutoff)
        .order_by(dead_letter.c.id)
        .limit(limit)
        .cte("picked")
        .prefix_with("MATERIALIZED")
    )
    place = literal(position, BigInteger) + func.row_number().over(order_by=picked.c.id)
    written = (
        plan_item.insert()
        .from_select(
            ["plan", "position", "dead_letter", "number", "raw", "sequence"],
            select(literal(plan, BigInteger), place, picked.c.id, picked.c.number, picked.c.raw, picked.c.sequence),
        )
        .cte("written")
    )
    said = func.string_agg(
        literal_column("int8send(picked.id) || int4send(picked.sequence)"), literal_column("''::bytea ORDER BY picked.id")
    )
    digest = func.sha256(func.coalesce(said, literal_column("''::bytea")))
    return select(func.count(), func.max(picked.c.id), digest).add_cte(written)
