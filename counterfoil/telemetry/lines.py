"""Our own log lines: one closed list of events, one closed list of fields, JSON or words, on standard error.

It must never print a payload, a token or an exception's text: a text that is no name or code is replaced by "withheld".
"""

import re
import sys
from collections.abc import Iterable
from datetime import UTC, datetime
from enum import Enum
from functools import lru_cache
from typing import Any, TypedDict, Unpack
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
    sink: str
    state: str
    attempt: int
    revision: int
    reason: str
    kind: str
    redelivered: bool
    ledger: str
    topic: str
    partition: int
    offset: int
    shard: int
    shards: int
    epoch: int
    worker: int | str
    session: int
    count: int
    seconds: float
    error_class: str
    error_code: str
    place: str
    exit_code: int


ALLOWED = frozenset(Fields.__annotations__)
#: What a text in a line may look like: names and codes. Anything else was meant to be read by somebody else.
PLAIN = re.compile(r"[A-Za-z0-9_.:/@+\-]{0,200}")
WITHHELD = "withheld"


@lru_cache(maxsize=4096)  # names and codes come again and again
def _plain_text(text: str) -> str:
    return text if PLAIN.fullmatch(text) else WITHHELD


def plain(value: Sayable) -> str | int | float | bool | UUID | None:
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


def as_json(_: Any, __: str, entry: Any) -> bytes:
    return orjson.dumps(entry)


def as_words(_: Any, __: str, entry: Any) -> str:
    time, level, event = entry.pop("time"), entry.pop("level"), entry.pop("event")
    return " ".join([time, level, event, *(f"{name}={value}" for name, value in entry.items())])


def logger_of(renderer: Any) -> Any:
    """A logger of its own: structlog's global configuration stays the user's."""
    return structlog.wrap_logger(_Output(), processors=[_stamp, renderer], wrapper_class=structlog.BoundLoggerBase)


class Log:
    """The one logger of the process; before `configure` it is silent (a library in a caller's program)."""

    def __init__(self) -> None:
        self.to: Any = None
        self.json = True
        self.own: tuple[str, ...] = ()
        self.dropped: frozenset[LogEvent] = frozenset()


THE_LOG = Log()


def emit(level: str, event: str, fields: dict[str, Any]) -> None:
    if THE_LOG.to is not None:
        THE_LOG.to._proxy_to_logger("msg", event, level=level, **fields)


def log(event: LogEvent, **fields: Unpack[Fields]) -> None:
    """Write one line. Texts that are no name or code are replaced by "withheld"."""
    if event not in THE_LOG.dropped:
        emit("info", event.value, _checked(fields))


def log_each(event: LogEvent, lines: Iterable[Fields]) -> None:
    """Write a line for each, all in one write: what a batch did to its operations. Checked as `log` checks."""
    if event in THE_LOG.dropped or THE_LOG.to is None:
        return
    first = {"time": datetime.now(UTC).isoformat(timespec="milliseconds"), "level": "info", "event": event.value}
    if THE_LOG.json:
        written = [as_json(None, "", first | _checked(fields)).decode() for fields in lines]
    else:
        written = [as_words(None, "", first | _checked(fields)) for fields in lines]
    if written:
        _Output().msg("\n".join(written))


def alarm(event: LogEvent, **fields: Unpack[Fields]) -> None:
    """Write one line that somebody should be woken for; never dropped."""
    emit("warning", event.value, _checked(fields))


def _checked(fields: Fields) -> dict[str, Any]:
    unknown = fields.keys() - ALLOWED
    if unknown:
        raise TypeError(f"no log line has a field {min(unknown)}")
    return {name: plain(value) for name, value in fields.items()}  # type: ignore[arg-type]
