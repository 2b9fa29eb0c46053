"""What the processes say about themselves: log lines out of one closed list of events, and counters with fixed labels.

It must never print a payload, a token, or an exception's text or traceback, whoever logs: other libraries' records (Faust and
mode log exception texts themselves, SQLAlchemy its parameters) are reduced to logger, place and exception class the moment they
are made, so that no handler, also one installed later, has anything to print.
"""

import importlib
import logging
import re
import sys
import threading
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from enum import Enum
from functools import lru_cache
from types import TracebackType
from typing import Any, Literal, TypedDict, Unpack
from uuid import UUID

import orjson
import structlog

from counterfoil.core.events import LogEvent

Sayable = str | int | float | bool | UUID | datetime | Enum | None


class Fields(TypedDict, total=False):
    """The names that a log line may carry; there are no others."""

    operation_id: UUID | str
    number: int
    type: str
    state: str
    attempt: int
    revision: int
    reason: str
    kind: str
    redelivered: bool
    copy: bool
    ledger: str
    topic: str
    partition: int
    offset: int
    up_to: int
    shard: int
    shards: int
    epoch: int
    worker: int | str
    session: int
    count: int
    seconds: float
    due_at: datetime
    error_class: str
    error_code: str
    signal: str
    exit_code: int


ALLOWED = frozenset(Fields.__annotations__)
#: What a text in a line may look like: names and codes. Anything else was meant to be read by somebody else.
PLAIN = re.compile(r"[A-Za-z0-9_.:/@+\-]{0,200}")
WITHHELD = "withheld"


@lru_cache(maxsize=4096)  # names and codes come again and again
def _plain_text(text: str) -> str:
    return text if PLAIN.fullmatch(text) else WITHHELD


def _plain(value: Sayable) -> str | int | float | bool | UUID | None:
    if type(value) is str:
        return _plain_text(value)
    if type(value) is UUID or value is None or isinstance(value, (bool, int, float, UUID)):
        return value
    if isinstance(value, Enum):
        value = value.value
    if isinstance(value, datetime):
        return value.isoformat()
    return _plain_text(str(value))


class _Output:
    """One line a call to standard error, whichever object that is now; standard output belongs to the commands' answers."""

    def msg(self, line: bytes | str) -> None:
        text = line.decode() if isinstance(line, bytes) else line
        try:
            sys.stderr.write(text + "\n")
            sys.stderr.flush()
        except (ValueError, OSError):
            pass  # nobody listens any more: a closed pipe must not stop a worker

    info = warning = msg


def _stamp(_: Any, __: str, entry: Any) -> Any:
    first = {
        "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
        "level": entry.pop("level"),
        "event": entry.pop("event"),
    }
    return first | entry


def _as_json(_: Any, __: str, entry: Any) -> bytes:
    return orjson.dumps(entry)


def _as_words(_: Any, __: str, entry: Any) -> str:
    time, level, event = entry.pop("time"), entry.pop("level"), entry.pop("event")
    return " ".join([time, level, event, *(f"{name}={value}" for name, value in entry.items())])


def _logger(renderer: Any) -> Any:
    """A logger of its own: structlog's global configuration stays the user's."""
    return structlog.wrap_logger(_Output(), processors=[_stamp, renderer], wrapper_class=structlog.BoundLoggerBase)


class _Log:
    """The one logger of the process; before `configure` it is silent (a library in a caller's program)."""

    def __init__(self) -> None:
        self.to: Any = None
        self.json = True
        self.own: tuple[str, ...] = ()
        self.dropped: frozenset[LogEvent] = frozenset()


_log = _Log()


def _emit(level: str, event: str, fields: dict[str, Any]) -> None:
    if _log.to is not None:
        _log.to._proxy_to_logger("msg", event, level=level, **fields)


def log(event: LogEvent, **fields: Unpack[Fields]) -> None:
    """Write one line. Texts that are no name or code are replaced by "withheld"."""
    if event not in _log.dropped:
        _emit("info", event.value, _checked(fields))


def log_each(event: LogEvent, lines: Iterable[Fields]) -> None:
    """Write a line for each, all in one write: what a batch did to its operations. Checked as `log` checks."""
    if event in _log.dropped or _log.to is None:
        return
    first = {"time": datetime.now(UTC).isoformat(timespec="milliseconds"), "level": "info", "event": event.value}
    if _log.json:
        written = [_as_json(None, "", first | _checked(fields)).decode() for fields in lines]
    else:
        written = [_as_words(None, "", first | _checked(fields)) for fields in lines]
    if written:
        _Output().msg("\n".join(written))


def alarm(event: LogEvent, **fields: Unpack[Fields]) -> None:
    """Write one line that somebody should be woken for; never dropped."""
    _emit("warning", event.value, _checked(fields))


def _checked(fields: Fields) -> dict[str, Any]:
    unknown = fields.keys() - ALLOWED
    if unknown:
        raise TypeError(f"no log line has a field {min(unknown)}")
    return {name: _plain(value) for name, value in fields.items()}  # type: ignore[arg-type]


# -- what others log


def _is_own(name: str) -> bool:
    return any(name == own or name.startswith(own + ".") for own in _log.own)


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
        _emit(record.levelname.lower(), "foreign", fields)


def _make_record(*args: Any, **kwargs: Any) -> logging.LogRecord:
    return _reduce(logging.LogRecord(*args, **kwargs))


def _last_words(kind: type[BaseException], error: BaseException | None, trace: TracebackType | None) -> None:
    """For an exception that nobody caught: its class and the last place in it, and no more."""
    place = "unknown"
    while trace is not None:
        place = f"{trace.tb_frame.f_globals.get('__name__', 'unknown')}:{trace.tb_lineno}"
        trace = trace.tb_next
    _emit("error", "uncaught", {"error_class": kind.__name__, "place": _plain(place)})


def configure(
    json: bool, *, own_loggers: Sequence[str] = (), drop: frozenset[LogEvent] = frozenset(), level: int = logging.WARNING
) -> None:
    """Take over this process's logging; call it again after a library (Faust's Worker) has set up its own.

    `own_loggers` are the user's, printed as they are. `drop` are events that an installation does not want.
    """
    _log.to = _logger(_as_json if json else _as_words)
    _log.json = json
    _log.own, _log.dropped = tuple(own_loggers), drop
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


# -- counters, in this process only; a later door exposes them

CounterName = Literal[
    "records_received",  # Kafka records handed to admit, by type
    "records_completed",  # records with nothing left to do, by type and reason (redelivered, copied, already settled)
    "records_kept_raw",  # records quarantined or held, by type and reason (D26)
    "operations_admitted",  # by type
    "operations_settled",  # by type, state and reason
    "answers_kept",  # late answers kept as evidence, by type and reason
    "rows_published",  # outbox rows with their delivery report, by type
    "rows_refused",  # outbox rows moved aside, by type and reason
    "sends_unknown",  # sends whose report never came, by type
    "due_taken",  # operations that a sweeper moved, by type and state
    "units_repeated",  # transactions repeated after 40P01 or 40001
]
CountKey = tuple[CounterName, str, str, str]  # name, type, reason, state: the only labels (D95)

_counts: Counter[CountKey] = Counter()
_counts_lock = threading.Lock()


def count(name: CounterName, by: int = 1, *, operation_type: str = "", reason: str = "", state: str = "") -> None:
    """Add to a counter. Labels are names of types, reasons and states, all from closed lists; never ids or texts."""
    key: CountKey = (name, str(_plain(operation_type)), str(_plain(reason)), str(_plain(state)))
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
        _emit("info", "counted", {"counter": name, "count": total, **{label: text for label, text in labels.items() if text}})


# -- trace context


def _current_span() -> Any:
    try:
        return importlib.import_module("opentelemetry.trace").get_current_span
    except ImportError:
        return None


_span_of: list[Any] = []  # looked up once: [] not yet, [None] without OpenTelemetry


def current_traceparent() -> str | None:
    """The caller's W3C trace context, where OpenTelemetry is installed and a span is open; else None."""
    if not _span_of:
        _span_of.append(_current_span())
    if _span_of[0] is None:
        return None
    context = _span_of[0]().get_span_context()
    if not context.is_valid:
        return None
    return f"00-{context.trace_id:032x}-{context.span_id:016x}-{int(context.trace_flags) & 0xFF:02x}"
