"""The invariants, asserted from the outside: ledger, topics and committed offsets are read, the sink's own journal is believed.

Call them when nothing runs any more. Each function names what it asserts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from typing import Any
from uuid import UUID

from confluent_kafka import Message
from sqlalchemy import Engine, text

from counterfoil.core.chain import head_after
from counterfoil.core.errors import Undecodable
from counterfoil.schemas.envelope import parse_command, parse_state_id
from counterfoil.schemas.lock import RegistryLock
from counterfoil.schemas.state_record import StateContract
from counterfoil.schemas.system import state_definition

DONE = ("succeeded", "confirmed")


def states(engine: Engine) -> dict[UUID, str]:
    """Every operation's state."""
    query = "SELECT o.operation_id, s.state FROM counterfoil.operation o JOIN counterfoil.state s USING (number)"
    with engine.connect() as connection:
        return {row.operation_id: row.state for row in connection.execute(text(query))}


def accepted_is_what_the_callers_know(
    engine: Engine, ok: Collection[UUID], unknown: Collection[UUID], failed: Collection[UUID]
) -> None:
    """S4, S19: what a caller's commit said is there; what it rolled back is not; of the rest nobody can say."""
    there = set(states(engine))
    assert set(ok) <= there
    assert not set(failed) & there
    assert there <= set(ok) | set(unknown)


def effects_are_single(engine: Engine, effects: Mapping[str, int], names: Collection[UUID]) -> None:
    """S1: at most one an operation, exactly one where it is done."""
    assert max(effects.values(), default=0) <= 1, Counter(effects.values())
    now = states(engine)
    assert {str(each) for each in names if now.get(each) in DONE} <= {each for each, count in effects.items() if count == 1}


def chains_verify(engine: Engine) -> None:
    """S3, S15: ordinals without a hole, sequences that never fall, each hash over the one before, up to the head."""
    with engine.connect() as connection:
        heads = {
            row.number: row for row in connection.execute(text("SELECT number, sequence, events, chain FROM counterfoil.state"))
        }
        events = connection.execute(text("SELECT * FROM counterfoil.event ORDER BY number, ordinal")).all()
    last: dict[int, tuple[int, int, bytes]] = {}
    for event in events:
        ordinal, sequence, head = last.get(event.number, (0, 0, b""))
        assert event.ordinal == ordinal + 1
        assert event.sequence in (sequence, sequence + 1)
        head = head_after(head, event.number, event.sequence, event.kind, bytes(event.content))
        assert bytes(event.chain) == head, f"operation {event.number}, event {event.ordinal}"
        last[event.number] = (event.ordinal, event.sequence, head)
    assert {number: (row.events, row.sequence, bytes(row.chain)) for number, row in heads.items()} == last


def published_is_in_the_topics(engine: Engine, records: Collection[Message], topics_of: Mapping[str, str]) -> None:
    """S5: every note names a record that is there, and of that operation. `topics_of` maps an outbox kind and type to a topic."""
    by_place = {(record.topic(), record.partition(), record.offset()): record for record in records}
    query = """SELECT p.kind, o.type, o.operation_id, p.partition, p.record_offset
        FROM counterfoil.published p JOIN counterfoil.operation o USING (number)"""
    with engine.connect() as connection:
        notes = connection.execute(text(query)).all()
    for note in notes:
        topic = topics_of.get(note.kind) or topics_of[f"{note.kind}:{note.type}"]
        record = by_place.get((topic, note.partition, note.record_offset))
        if record is None and note.kind == "state":
            continue  # compacted away
        assert record is not None, note
        named = _NAMED.get(note.kind, _of_command)(record.headers())
        assert named == note.operation_id


def _of_command(headers: Any) -> UUID:
    return parse_command(headers).operation_id


_NAMED: Mapping[str, Callable[[Any], UUID | None]] = {
    "state": parse_state_id,
    "dead_letter": lambda headers: UUID(dict(headers)["cf_operation"].decode()),
}


def _named(record: Message) -> UUID | None:
    try:
        return parse_command(record.headers()).operation_id
    except Undecodable:
        return None


def below_the_committed_offset_all_is_known(
    engine: Engine, records: Collection[Message], committed: Mapping[tuple[str, int], int]
) -> None:
    """S6: a known operation that is final or has a due time, or a raw row of its own."""
    query = """SELECT o.operation_id FROM counterfoil.operation o JOIN counterfoil.state s USING (number)
        WHERE s.due_at IS NOT NULL OR s.closed_at IS NOT NULL"""
    with engine.connect() as connection:
        known = set(connection.execute(text(query)).scalars())
        kept = {
            tuple(row) for row in connection.execute(text("SELECT topic, partition, record_offset FROM counterfoil.raw_record"))
        }
    for record in records:
        topic, partition, offset = record.topic() or "", record.partition() or 0, record.offset() or 0
        if offset < committed.get((topic, partition), 0) and (topic, partition, offset) not in kept:
            assert _named(record) in known, f"S6: {topic}/{partition}/{offset} was passed, and is no known operation and not kept"


def the_state_topic_ends_with_the_ledger(engine: Engine, records: Collection[Message], state_schema: int = 1) -> None:
    """S16: the last record of each key is the operation's last reported transition."""
    definition = state_definition()
    entry = RegistryLock().with_local(definition).entry(definition)
    contract = StateContract(RegistryLock({definition.subject: type(entry)(entry.version, state_schema, entry.sha256)}))
    last = {parse_state_id(record.headers()): contract.decode(record.value()) for record in records}
    query = """SELECT DISTINCT ON (e.number) o.operation_id, e.state, e.sequence FROM counterfoil.event e
        JOIN counterfoil.operation o USING (number)
        WHERE e.state NOT IN ('queued', 'running') AND e.kind NOT IN ('sent_again', 'redelivered', 'copied', 'receipt_kept',
            'answer_kept', 'cancel_asked', 'recorded') ORDER BY e.number, e.ordinal DESC"""
    with engine.connect() as connection:
        reported = {row.operation_id: (row.state, row.sequence) for row in connection.execute(text(query))}
    told = {key: (record.state, record.sequence) for key, record in last.items()}
    other = {
        key: (told.get(key), reported.get(key)) for key in told.keys() | reported.keys() if told.get(key) != reported.get(key)
    }
    assert not other, f"S16: {len(other)} keys end otherwise on the topic than in the ledger, as {next(iter(other.items()))}"


def nothing_still_moves(engine: Engine) -> None:
    """L1, L5: at rest, nothing is queued, running or waiting for a retry."""
    moving = [number for number, state in states(engine).items() if state in ("queued", "running", "retry_wait")]
    assert not moving, f"L5: {len(moving)} operations are still before their end"


def nothing_is_forgotten(engine: Engine) -> None:
    """L1, L2, L5: the outbox is empty, and everything is final, or has a due time that is not long past."""
    with engine.connect() as connection:
        assert connection.execute(text("SELECT count(*) FROM counterfoil.outbox")).scalar_one() == 0
        late = "SELECT count(*) FROM counterfoil.state WHERE due_at < counterfoil.ledger_time() - interval '30 seconds'"
        assert connection.execute(text(late)).scalar_one() == 0
