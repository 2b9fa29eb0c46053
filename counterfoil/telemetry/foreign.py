"""What everybody else logs in our processes: reduced to logger, place and exception class the moment a record is made.

So no handler, also one that a library installs later, has an exception's text, a traceback or a parameter to print. A line of the
same logger and kind is written once in a while, with the count of those left out: a broker that is away must not fill a disk.
"""

import logging
import re
import sys
import threading
import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, Literal

from counterfoil.core.events import LogEvent
from counterfoil.telemetry.lines import THE_LOG, WITHHELD, as_json, as_words, emit, logger_of, plain
from counterfoil.telemetry.quota import Quota

LIBRDKAFKA = "counterfoil.librdkafka"
#: How confluent-kafka hands a line of librdkafka on; the first argument is one of its own fixed codes.
FROM_LIBRDKAFKA = "%s [%s] %s"
CODE = re.compile(r"[A-Z_]{1,20}")
#: One line for each try to connect. That brokers are away is told by librdkafka's `ERROR` and by our own alarms.
CHATTER = frozenset({"FAIL"})


def _is_own(name: str) -> bool:
    return any(name == own or name.startswith(own + ".") for own in THE_LOG.own)


def _code(record: logging.LogRecord) -> str | None:
    if record.name != LIBRDKAFKA or record.msg != FROM_LIBRDKAFKA or not isinstance(record.args, tuple) or not record.args:
        return None
    code = record.args[0]
    return code if isinstance(code, str) and CODE.fullmatch(code) else None


def _reduce(record: logging.LogRecord) -> logging.LogRecord:
    """Keep logger, place and exception class; message, arguments, traceback and extras go."""
    if _is_own(record.name) or hasattr(record, "reduced"):
        return record
    raised = record.exc_info[0] if isinstance(record.exc_info, tuple) else None
    record.reduced = True
    record.error_code = _code(record)
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
    """Writes other libraries' records as lines of ours, event `foreign`; those of the user's own loggers as they are, and all."""

    def __init__(self, least: int = logging.WARNING, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._least, self._clock, self._quota = least, clock, Quota()

    def emit(self, record: logging.LogRecord) -> None:
        fields: dict[str, Any] = {"logger": record.name, "place": f"{record.module}:{record.lineno}"}
        if _is_own(record.name):
            emit(record.levelname.lower(), "foreign", fields | {"message": record.getMessage()})
            return
        code, error_class = getattr(record, "error_code", None), getattr(record, "error_class", None)
        level = logging.DEBUG if code in CHATTER else record.levelno
        if level < self._least:
            return
        left_out = self._quota.say((record.name, code or error_class or fields["place"]), self._clock())
        if left_out is not None:
            more = {"error_class": error_class, "error_code": code, "left_out": left_out or None}
            emit(logging.getLevelName(level).lower(), "foreign", fields | {name: one for name, one in more.items() if one})

    def close(self) -> None:
        """At the end of the process: what was left out and not told yet."""
        for (logger, kind), left_out in self._quota.rest():
            emit("info", "foreign", {"logger": logger, "kind": kind, "left_out": left_out})
        super().close()


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
    handler = ForeignLines(level)
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
