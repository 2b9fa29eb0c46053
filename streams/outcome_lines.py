"""The log lines and counters of what was written of operations, by whoever; one write a batch."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple
from uuid import UUID

from counterfoil.core.decisions import Kept, Move
from counterfoil.core.events import EventKind, LogEvent
from counterfoil.core.raised import Raised
from counterfoil.ledger.moves import Written
from counterfoil.telemetry import Fields, count, log_each


class Became(NamedTuple):
    """What became of one operation's attempt."""

    operation_id: UUID
    attempt: int
    by: Move | Kept
    raised: Raised | None = None  #: where its effect raised


#: The lines of the kinds that relay and worker write. A record sent again is no answer and no move: it is not counted here.
EVENTS = {
    EventKind.RESULT_SAVED: LogEvent.RESULT_SAVED,
    EventKind.RETRY_SCHEDULED: LogEvent.RETRY_SCHEDULED,
    EventKind.AWAITING_CONFIRMATION: LogEvent.AWAITING_CONFIRMATION,
    EventKind.QUARANTINED: LogEvent.QUARANTINED,
    EventKind.NOT_APPLICABLE: LogEvent.NOT_APPLICABLE,
    EventKind.RECEIPT_KEPT: LogEvent.RECEIPT_KEPT,
    EventKind.ANSWER_KEPT: LogEvent.ANSWER_KEPT,
    EventKind.SENT_AGAIN: LogEvent.SENT_AGAIN,
}


def tell(type_name: str, became: Iterable[Became]) -> None:
    """Say what answers made of their operations, once it is committed."""
    tell_written(
        Written(operation_id, type_name, attempt, by.kind, by.to if isinstance(by, Move) else None, by.reason, raised)
        for operation_id, attempt, by, raised in became
    )


def tell_written(written: Iterable[Written]) -> None:
    """Say what was written, once it is committed: by whom, a worker, a sweeper or a relay, its own lines tell."""
    lines: dict[EventKind, list[Fields]] = {}
    totals: dict[tuple[EventKind, str, str, str], int] = {}
    for operation_id, type_name, attempt, kind, at, reason, raised in written:
        state = at.value if at is not None else ""
        line: Fields = {"operation_id": operation_id, "type": type_name, "attempt": attempt, "state": state, "reason": reason}
        if raised is not None:
            line["error_class"], line["place"] = raised.error_class, raised.place
        lines.setdefault(kind, []).append(line)
        which = kind, type_name, state, reason
        totals[which] = totals.get(which, 0) + 1
    for kind, made in lines.items():
        log_each(EVENTS[kind], made)
    for (kind, type_name, state, reason), total in totals.items():
        if state:
            count("operations_settled", total, operation_type=type_name, state=state, reason=reason)
        elif kind is not EventKind.SENT_AGAIN:
            count("answers_kept", total, operation_type=type_name, reason=reason)
