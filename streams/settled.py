"""The log lines and counters of what settling made of operations; one write a batch."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple
from uuid import UUID

from counterfoil.core.decisions import Kept, Move
from counterfoil.core.events import LogEvent
from counterfoil.telemetry import Fields, count, log_each


class Became(NamedTuple):
    """What became of one operation's attempt."""

    operation_id: UUID
    attempt: int
    by: Move | Kept


_EVENTS = {event.value: event for event in LogEvent}


def tell(type_name: str, became: Iterable[Became]) -> None:
    """Say it, once it is committed."""
    lines: dict[str, list[Fields]] = {}
    totals: dict[tuple[str, str], int] = {}
    for operation_id, attempt, by in became:
        kind = by.kind.value
        state = by.to.value if isinstance(by, Move) else ""
        lines.setdefault(kind, []).append(
            {"operation_id": operation_id, "type": type_name, "attempt": attempt, "state": state, "reason": by.reason}
        )
        totals[state, by.reason] = totals.get((state, by.reason), 0) + 1
    for kind, made in lines.items():
        log_each(_EVENTS[kind], made)
    for (state, reason), total in totals.items():
        if state:
            count("operations_settled", total, operation_type=type_name, state=state, reason=reason)
        else:
            count("answers_kept", total, operation_type=type_name, reason=reason)
