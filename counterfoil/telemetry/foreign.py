"""What everybody else logs in our processes: reduced to logger, place and exception class the moment a record is made.

So no handler, also one that a library installs later, has an exception's text, a traceback or a parameter to print.
"""

import logging
import sys
import threading
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Literal

from counterfoil.core.events import LogEvent
from counterfoil.telemetry.lines import THE_LOG, WITHHELD, as_json, as_words, emit, logger_of, plain


def _is_own(name: str) -> bool:
    return any(name == own or name.startswith(own + ".") for own in THE_LOG.own)


def _reduce(record: logging.LogRecord) -> logging.LogRecord:
    """Keep logger, place and exception class; message, arguments, traceback and extras go."""
    if _is_own(record.name) or hasattr(record, "reduced"):
        return record
    raised = record.exc_info[0] if isinstance(record.exc_info, tuple) else None
    record.reduced = True
    record.error_class = raised.__name__ if raised else None
    record.msg = f"{WITHHELD}: {record.name} at {record.module}:{record.lineno}" + (f" {raised.__name__}" if raised else "")
    record.args, record.exc_info, record.exc_text, record.stack_info = None, None, None, None
    return record


class WithholdForeign(logging.Filter):
    """For handlers: reduces every record that is not of the user's own loggers, however it was made."""

    def filter(self, record: logging.LogRecord) -> bool:
        _reduce(record)
        return True


class ForeignLines(logging.Handler):
    """Writes other libraries' records as lines of ours, event `foreign`."""

    def emit(self, record: logging.LogRecord) -> None:
        fields: dict[str, Any] = {"logger": record.name, "place": f"{record.module}:{record.lineno}"}
        if _is_own(record.name):
            fields["message"] = record.getMessage()
        elif error_class := getattr(record, "error_class", None):
            fields["error_class"] = error_class
        emit(record.levelname.lower(), "foreign", fields)


def _make_record(*args: Any, **kwargs: Any) -> logging.LogRecord:
    return _reduce(logging.LogRecord(*args, **kwargs))


def last_place(trace: TracebackType | None) -> str:
    """Module and line at which an exception was raised: all of it that a line may say beside its class."""
    place = "unknown"
    while trace is not None:
        place = f"{trace.tb_frame.f_globals.get('__name__', 'unknown')}:{trace.tb_lineno}"
        trace = trace.tb_next
    return place


def _last_words(kind: type[BaseException], error: BaseException | None, trace: TracebackType | None) -> None:
    """For an exception that nobody caught: its class and the last place in it, and no more."""
    emit("error", "uncaught", {"error_class": kind.__name__, "place": plain(last_place(trace))})


def configure(
    json: bool, *, own_loggers: Sequence[str] = (), drop: frozenset[LogEvent] = frozenset(), level: int = logging.WARNING
) -> None:
    """Take over this process's logging; call it again after a library (Faust's Worker) has set up its own.

    `own_loggers` are the user's, printed as they are. `drop` are events that an installation does not want.
    """
    THE_LOG.to = logger_of(as_json if json else as_words)
    THE_LOG.json = json
    THE_LOG.own, THE_LOG.dropped = tuple(own_loggers), drop
    logging.setLogRecordFactory(_make_record)
    handler = ForeignLines()
    handler.addFilter(WithholdForeign())
    logging.root.handlers[:] = [handler]
    logging.root.setLevel(level)
    logging.captureWarnings(True)
    sys.excepthook = _last_words
    sys.unraisablehook = lambda raised: _last_words(raised.exc_type, raised.exc_value, raised.exc_traceback)
    threading.excepthook = lambda raised: _last_words(raised.exc_type, raised.exc_value, raised.exc_traceback)


def library_logger(name: Literal["librdkafka", "faust"]) -> logging.Logger:
    """A logger to hand to a library that would otherwise print to standard error itself (librdkafka: `logger=`)."""
    return logging.getLogger(f"counterfoil.{name}")
