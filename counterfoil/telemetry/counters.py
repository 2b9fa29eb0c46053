"""Counters of one process, with fixed labels; a later door exposes them. No id, text or name from a payload is ever a label."""

import threading
from collections import Counter
from typing import Literal

from counterfoil.telemetry.lines import emit, plain

CounterName = Literal[
    "records_received",  # Kafka records handed to admit, by type
    "records_completed",  # records with nothing left to do, by type and reason (redelivered, copied, already settled)
    "records_kept_raw",  # records quarantined or held, by type and reason (D26)
    "records_released",  # held records let go, by type and reason
    "operations_admitted",  # by type
    "operations_settled",  # by type, state and reason
    "answers_kept",  # late answers kept as evidence, by type and reason
    "rows_published",  # outbox rows with their delivery report, by type
    "rows_refused",  # outbox rows moved aside, by type and reason
    "sends_unknown",  # sends whose report never came, by type
    "breakers_opened",  # times that this worker found a sink down
    "due_taken",  # operations that a sweeper moved, by type and state
]
CountKey = tuple[CounterName, str, str, str]  # name, type, reason, state: the only labels (D95)

_counts: Counter[CountKey] = Counter()
_counts_lock = threading.Lock()


def count(name: CounterName, by: int = 1, *, operation_type: str = "", reason: str = "", state: str = "") -> None:
    """Add to a counter. Labels are names of types, reasons and states, all from closed lists; never ids or texts."""
    key: CountKey = (name, str(plain(operation_type)), str(plain(reason)), str(plain(state)))
    with _counts_lock:
        _counts[key] += by


def counts() -> dict[CountKey, int]:
    """What was counted since the process began, by (name, type, reason, state); an absent label is ''."""
    with _counts_lock:
        return dict(_counts)


def log_counts() -> None:
    """One line for each counter, for the end of a process."""
    for (name, type_, reason, state), total in sorted(counts().items()):
        labels = {"type": type_, "reason": reason, "state": state}
        emit("info", "counted", {"counter": name, "count": total, **{label: text for label, text in labels.items() if text}})
