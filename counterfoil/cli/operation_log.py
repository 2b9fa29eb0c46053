"""The log of one operation, in order: the ledger's events, and the lines that are derived instead of being stored.

`received` and `ack_sent` of a first delivery are rows of no operation: the coordinates of the record are in the admitted event,
and the first offset commit above them is the acknowledgement. It holds no payload, and must never be given one.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from counterfoil.core.events import EventKind, LogEvent
from counterfoil.core.reasons import reason_sentence
from counterfoil.core.roads import KIND_OF, arrival_topic, road_of, topic_of
from counterfoil.ledger.reading import Event, Passed, Published

#: Details that are shown, by name. A detail that is not here stays in the ledger.
SHOWN = frozenset(
    {
        "actor",
        "epoch",
        "generation",
        "kind",
        "offset",
        "outcome",
        "partition",
        "remote_id",
        "result",
        "revision",
        "road",
        "rule",
        "session",
    }
    | {"due_at", "wait", "attempt", "topic", "number", "asked", "evidence", "cause", "why", "error_class", "place"}
)
DELIVERIES = frozenset({EventKind.ADMITTED.value, EventKind.REDELIVERED.value, EventKind.COPIED.value})


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the log of an operation."""

    at: datetime
    event: str
    attempt: int
    state: str | None  #: afterwards; None for a derived line
    reason: str | None
    sentence: str | None
    detail: dict[str, Any]
    derived: bool = False  #: told from coordinates, not a row of the ledger


@dataclass(frozen=True, slots=True)
class Delivery:
    """One record that a worker received for the operation."""

    event: Event
    topic: str
    partition: int
    offset: int

    @property
    def place(self) -> tuple[str, int, int]:
        return self.topic, self.partition, self.offset


def topic_of_row(ledger: str, operation_type: str, kind: str) -> str:
    """The topic to which an outbox row of this kind goes."""
    return topic_of(ledger, road_of(kind, operation_type))


def deliveries(events: Sequence[Event], ledger: str, operation_type: str) -> list[Delivery]:
    """Every record that was received, from the events that carry its coordinates."""
    found = []
    for one in events:
        match one.detail:
            case {"road": str(road), "partition": int(partition), "offset": int(offset)} if (
                one.kind in DELIVERIES and road in KIND_OF
            ):
                found.append(Delivery(one, arrival_topic(ledger, operation_type, road), partition, offset))
    return found


def entries(
    events: Sequence[Event], received: Sequence[Delivery], passed: Sequence[Passed], published: Sequence[Published]
) -> list[Entry]:
    """Events and derived lines in order: what was received stands before what came of it, its acknowledgement after."""
    before = {one.event.ordinal: one for one in received if one.event.kind == EventKind.ADMITTED}
    log: list[Entry] = []
    for event in events:
        if event.ordinal in before:
            log.append(_received(before[event.ordinal]))
        shown = {name: value for name, value in (event.detail or {}).items() if name in SHOWN}
        log.append(Entry(event.at, event.kind, event.attempt, event.state, event.reason, reason_sentence(event.reason), shown))
    attempts = {one.place: one.event.attempt for one in received}
    for note in passed:
        place = (note.topic, note.partition, note.record_offset)
        detail = {"topic": note.topic, "partition": note.partition, "offset": note.record_offset, "session": note.session}
        log.append(Entry(note.at, LogEvent.ACK_SENT.value, attempts[place], None, None, None, detail, derived=True))
    for row in published:
        detail = {"kind": row.kind, "partition": row.partition, "offset": row.record_offset}
        log.append(Entry(row.at, LogEvent.PUBLISHED.value, 0, None, None, None, detail, derived=True))
    return sorted(log, key=lambda entry: entry.at)


def _received(delivery: Delivery) -> Entry:
    event = delivery.event
    detail = {"topic": delivery.topic, "partition": delivery.partition, "offset": delivery.offset, "redelivered": False}
    return Entry(event.at, LogEvent.RECEIVED.value, event.attempt, None, None, None, detail, derived=True)
