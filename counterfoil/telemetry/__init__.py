"""What the processes say about themselves: log lines out of one closed list of events, and counters with fixed labels.

It must never print a payload, a token, or an exception's text or traceback, whoever logs.
"""

from counterfoil.telemetry.counters import CounterName, CountKey, count, counts, log_counts
from counterfoil.telemetry.foreign import configure, last_place, library_logger
from counterfoil.telemetry.lines import Fields, alarm, log, log_each
from counterfoil.telemetry.tracing import current_traceparent

__all__ = [
    "CountKey",
    "CounterName",
    "Fields",
    "alarm",
    "configure",
    "count",
    "counts",
    "current_traceparent",
    "last_place",
    "library_logger",
    "log",
    "log_counts",
    "log_each",
]
