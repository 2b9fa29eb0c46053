"""Statements that read operations for people: the list, one operation, and what happened to it.

They select no payload, no entity and no key of a record: all three hold or derive from what a caller handed in. They lock
nothing and execute nothing.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import BigInteger, Integer, ScalarSelect, Select, String, select, true, values
from sqlalchemy import column as named

from counterfoil.core.states import FINAL, State
from counterfoil.ledger.statements.moving import STANDING
from counterfoil.ledger.tables import event, ledger_time, operation, state
from counterfoil.ledger.tables_records import acknowledged, outbox, published, raw_record, refused

LINE = (
    operation.c.number,
    operation.c.operation_id,
    operation.c.type,
    operation.c.created_at,
    state.c.state,
    state.c.attempt,
    state.c.tries_left,
    state.c.reason,
    state.c.due_at,
    state.c.closed_at,
    state.c.updated_at,
)
WHOLE = (
    *LINE,
    operation.c.version,
    operation.c.correlation_id,
    operation.c.traceparent,
    state.c.sequence,
    state.c.revision,
    state.c.generation,
    state.c.outcome,
    state.c.doubtful_since,
    state.c.attempt_until,
    state.c.session,
    state.c.cancel_asked,
    state.c.not_before,
    state.c.record_road,
    state.c.record_partition,
    state.c.record_offset,
    state.c.remote_id,
    state.c.remote_version,
    state.c.result_key,
    ledger_time.label("now"),
)
JOINED = operation.join(state, state.c.number == operation.c.number)


def _once() -> ScalarSelect[Any]:
    """The ledger's time, read once a statement: the function is volatile, and would be called for every row."""
    return select(ledger_time).scalar_subquery()


def in_states(lines: Select[Any], states: Sequence[State]) -> Select[Any]:
    """Narrow to these states; with none that can be closed, also by the partial index on what is due."""
    lines = lines.where(state.c.state.in_([one.value for one in states]))
    never_closed = not any(one in FINAL or one is State.SUCCEEDED for one in states)
    return lines.where(state.c.due_at.is_not(None)) if never_closed else lines


def older_than(lines: Select[Any], age: timedelta) -> Select[Any]:
    """Narrow to what was accepted longer ago, by the ledger's clock."""
    return lines.where(operation.c.created_at < _once() - age)


def newer_than(lines: Select[Any], age: timedelta) -> Select[Any]:
    """Narrow to what was accepted since, by the ledger's clock."""
    return lines.where(operation.c.created_at >= _once() - age)


def lines() -> Select[Any]:
    """Operations, newest first."""
    return select(*LINE).select_from(JOINED).order_by(operation.c.number.desc())


def one(operation_id: UUID) -> Select[Any]:
    """One operation with all that is shown of it, and the ledger's time."""
    return select(*WHOLE).select_from(JOINED).where(operation.c.operation_id == operation_id)


def standing(number: int) -> Select[Any]:
    """What core's decisions are taken on."""
    return select(*(state.c[name] for name in STANDING)).where(state.c.number == number)


def events_of(number: int, since: datetime) -> Select[Any]:
    """Its events, in order. `since` (its creation) keeps older time partitions out."""
    columns = (event.c.ordinal, event.c.at, event.c.kind, event.c.state, event.c.attempt, event.c.reason, event.c.detail)
    return select(*columns).where(event.c.number == number, event.c.at >= since).order_by(event.c.ordinal)


def published_of(number: int, since: datetime) -> Select[Any]:
    """Its records that left, in the order of their delivery reports."""
    columns = (published.c.kind, published.c.partition, published.c.record_offset, published.c.at, published.c.outbox_id)
    return select(*columns).where(published.c.number == number, published.c.at >= since).order_by(published.c.at)


def unpublished_of(number: int, shards: Sequence[int]) -> Select[Any]:
    """Its rows that still wait, looked for in the shards that its keys fall into."""
    columns = (outbox.c.kind, outbox.c.created_at, outbox.c.id.label("outbox_id"))
    return select(*columns).where(outbox.c.shard.in_(shards), outbox.c.number == number).order_by(outbox.c.id)


def refused_of(number: int) -> Select[Any]:
    """Its rows that can never be sent."""
    columns = (refused.c.kind, refused.c.reason, refused.c.size, refused.c.at)
    return select(*columns).where(refused.c.number == number).order_by(refused.c.at)


def raw_of(number: int) -> Select[Any]:
    """Records kept raw that name it."""
    columns = (raw_record.c.status, raw_record.c.reason, raw_record.c.topic, raw_record.c.partition, raw_record.c.record_offset)
    found = select(raw_record.c.id.label("cause"), *columns, raw_record.c.at, raw_record.c.due_at)
    return found.where(raw_record.c.number == number).order_by(raw_record.c.at)


def entity_of(number: int) -> Select[Any]:
    """The entity's text, to find its shard; never shown."""
    return select(operation.c.entity).where(operation.c.number == number)


def acknowledged_after(places: Sequence[tuple[str, int, int]], since: datetime) -> Select[Any]:
    """For each (topic, partition, offset): the first commit that passed it."""
    asked = values(named("topic", String), named("partition", Integer), named("record_offset", BigInteger), name="asked").data(
        list(places)
    )
    first = (
        select(acknowledged.c.up_to, acknowledged.c.at, acknowledged.c.session)
        .where(
            acknowledged.c.topic == asked.c.topic,
            acknowledged.c.partition == asked.c.partition,
            acknowledged.c.up_to > asked.c.record_offset,
            acknowledged.c.at >= since,
        )
        .order_by(acknowledged.c.up_to)
        .limit(1)
        .lateral("first")
    )
    return select(asked.c.topic, asked.c.partition, asked.c.record_offset, first.c.at, first.c.session).select_from(
        asked.join(first, true())
    )
