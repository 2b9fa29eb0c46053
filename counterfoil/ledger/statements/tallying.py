"""Counting what is in a ledger. Statements only; nothing is executed here."""

from typing import Any

from sqlalchemy import Select, func, select

from counterfoil.ledger.tables import event, ledger_time, operation, state, worker
from counterfoil.ledger.tables_records import outbox, raw_record


def standing() -> Select[Any]:
    """How many operations there are of each type and state, and whether tries are left. Reads the whole of `state`."""
    more = (state.c.tries_left > 0).label("more")
    return (
        select(operation.c.type, state.c.state, more, func.count())
        .join(operation, operation.c.number == state.c.number)
        .group_by(operation.c.type, state.c.state, more)
    )


def unpublished() -> Select[Any]:
    return select(func.count()).select_from(outbox)


def kept_raw() -> Select[Any]:
    return select(func.count()).select_from(raw_record).where(raw_record.c.status != "released")


def live_sessions(role: str) -> Select[Any]:
    return (
        select(func.count())
        .select_from(worker)
        .where(worker.c.role == role, worker.c.stopped_at.is_(None), worker.c.lease_until > ledger_time)
    )


def running_by_session() -> Select[Any]:
    return (
        select(worker.c.name, func.count())
        .join(state, state.c.session == worker.c.id)
        .where(state.c.state == "running")
        .group_by(worker.c.name)
    )


def events_for(reason: str) -> Select[Any]:
    return select(func.count()).select_from(event).where(event.c.reason == reason)


def unfinished() -> Select[Any]:
    """By type: how many operations are open, in review and quarantined. Reads open rows only, whatever is settled beside them."""
    named = select(operation.c.type).where(operation.c.number == state.c.number).correlate(state).scalar_subquery()
    opened = select(named.label("type"), state.c.state).where(state.c.due_at.is_not(None)).subquery()
    of = opened.c.state
    return select(
        opened.c.type,
        func.count().label("open"),
        func.count().filter(of == "manual_review").label("in_review"),
        func.count().filter(of == "quarantined").label("quarantined"),
    ).group_by(opened.c.type)
