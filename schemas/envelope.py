"""The headers of every record that leaves the outbox: the CloudEvents Kafka binding and ours beside it.

Building them takes trusted values. Parsing takes whatever is on the topic: it answers, or raises Undecodable with the name of
the header, and never anything else. No payload, secret or exception text is ever put into a header.
"""

from binascii import unhexlify
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple
from uuid import UUID

from counterfoil.core.errors import Undecodable
from counterfoil.core.reasons import Reason

Headers = list[tuple[str, bytes]]  #: as confluent-kafka takes them
Texts = list[tuple[str, str]]  #: as the outbox keeps extra ones (jsonb)

TRAVELLING = ("traceparent", "tracestate", "content-type")  #: original headers that a dead letter takes along
_TRAVELLING_BYTES = 512
_SPEC = ("ce_specversion", b"1.0")
_CONTENT = ("content-type", b"application/avro")
_INT64 = 1 << 63
_REQUESTED = b".requested"


class Command(NamedTuple):
    """What a command record says of itself. Hints: the ledger's row, by number and id, decides."""

    number: int  #: the operation's number in the ledger
    operation_id: UUID
    type: str
    revision: int
    key: str  #: idempotency key
    event: int  #: outbox id
    traceparent: str | None = None


class DeadLetter(NamedTuple):
    """Where a quarantined record stood, and why it was moved aside."""

    cause: UUID  #: cause id, one for each dead letter
    reason: str  #: a closed code
    type: str
    consumer: str  #: name and version of the program that could not handle it
    topic: str
    partition: int
    offset: int
    timestamp: int  #: of the original record, milliseconds UTC; -1 when it had none
    operation_id: UUID | None = None
    attempt: int | None = None


def source(ledger: str) -> bytes:
    """`ce_source`: the same for every record of a ledger, so make it once."""
    return b"/counterfoil/" + ledger.encode()


def command_headers(source: bytes, command: Command) -> Headers:
    number, operation_id, type_name, revision, key, event, traceparent = command
    headers = [
        _SPEC,
        ("ce_id", str(operation_id).encode()),
        ("ce_source", source),
        ("ce_type", type_name.encode() + _REQUESTED),
        _CONTENT,
        ("cf_number", b"%d" % number),
        ("cf_revision", b"%d" % revision),
        ("cf_key", key.encode()),
        ("cf_event", b"%d" % event),
    ]
    if traceparent:
        headers.append(("traceparent", traceparent.encode()))
    return headers


def state_headers(source: bytes, operation_id: UUID, type: str, event: int, traceparent: str | None = None) -> Headers:  # noqa: A002
    """Of a state record, and of the null value that ends one."""
    headers = [
        _SPEC,
        ("ce_id", str(operation_id).encode()),
        ("ce_source", source),
        ("ce_type", type.encode() + b".state"),
        _CONTENT,
        ("cf_event", b"%d" % event),
    ]
    if traceparent:
        headers.append(("traceparent", traceparent.encode()))
    return headers


class CommandHeaders:
    """The same headers as `command_headers`, for many records of one type: what they share is made once."""

    __slots__ = ("_first", "_type")

    def __init__(self, source: bytes, type: str) -> None:  # noqa: A002
        self._first = ("ce_source", source)
        self._type = ("ce_type", type.encode() + _REQUESTED)

    def of(self, number: int, operation: str, revision: int, key: str, event: int) -> Headers:
        """`operation` is the id's usual text; a traceparent is appended by the caller."""
        return [
            _SPEC,
            ("ce_id", operation.encode()),
            self._first,
            self._type,
            _CONTENT,
            ("cf_number", b"%d" % number),
            ("cf_revision", b"%d" % revision),
            ("cf_key", key.encode()),
            ("cf_event", b"%d" % event),
        ]


class StateHeaders:
    """The same headers as `state_headers`, for many records of one type."""

    __slots__ = ("_first", "_type")

    def __init__(self, source: bytes, type: str) -> None:  # noqa: A002
        self._first = ("ce_source", source)
        self._type = ("ce_type", type.encode() + b".state")

    def of(self, operation: str, event: int) -> Headers:
        """`operation` is the id's usual text."""
        return [_SPEC, ("ce_id", operation.encode()), self._first, self._type, _CONTENT, ("cf_event", b"%d" % event)]


def dead_letter_texts(letter: DeadLetter, original: Iterable[tuple[str, bytes | None]] | None = None) -> Texts:
    """The closed list that a dead letter carries, as the outbox row keeps it; value and key stay the original bytes.

    Of the original headers only those in TRAVELLING go along, and only where they are short printable ASCII.
    """
    texts = [
        ("cf_reason", letter.reason),
        ("cf_cause", str(letter.cause)),
        ("cf_consumer", letter.consumer),
        ("cf_topic", letter.topic),
        ("cf_partition", str(letter.partition)),
        ("cf_offset", str(letter.offset)),
        ("cf_timestamp", str(letter.timestamp)),
    ]
    if letter.operation_id is not None:
        texts.append(("cf_operation", str(letter.operation_id)))
    if letter.attempt is not None:
        texts.append(("cf_attempt", str(letter.attempt)))
    texts.append(("cf_type", letter.type))
    texts.extend(_travelling(original))
    return texts


def dead_letter_headers(source: bytes, texts: Sequence[Sequence[str]], event: int) -> Headers:
    """The headers as published, from the outbox row's own; `ce_id` is the operation's id, else the cause's."""
    kept = {str(name): str(text) for name, text in texts}
    type_name = kept.pop("cf_type", "unknown")
    headers = [
        _SPEC,
        ("ce_id", (kept.get("cf_operation") or kept.get("cf_cause") or str(event)).encode()),
        ("ce_source", source),
        ("ce_type", type_name.encode() + b".quarantined"),
        ("cf_event", b"%d" % event),
    ]
    headers.extend((name, text.encode()) for name, text in kept.items())
    return headers


def parse_command(headers: Any) -> Command:
    """The headers of a command record, as confluent-kafka hands them over (None when there are none)."""
    found = _by_name(headers)
    return Command(
        _number(found, "cf_number"),
        _uuid(found, "ce_id"),
        _requested_type(_raw(found, "ce_type", 64)),
        _number(found, "cf_revision"),
        _text(found, "cf_key", 128),
        _number(found, "cf_event"),
        _text(found, "traceparent", 128) if found.get("traceparent") else None,
    )


def parse_state_id(headers: Any) -> UUID:
    """The operation of a state record; `ce_type` must say that it is one."""
    found = _by_name(headers)
    if not _text(found, "ce_type", 64).endswith(".state"):
        raise Undecodable(Reason.UNDECODABLE_FRAME, "ce_type")
    return _uuid(found, "ce_id")


def parse_dead_letter(headers: Any) -> DeadLetter:
    found = _by_name(headers)
    return DeadLetter(
        cause=_uuid(found, "cf_cause"),
        reason=_text(found, "cf_reason", 64),
        type=_text(found, "ce_type", 64).removesuffix(".quarantined"),
        consumer=_text(found, "cf_consumer", 128),
        topic=_text(found, "cf_topic", 249),
        partition=_number(found, "cf_partition"),
        offset=_number(found, "cf_offset"),
        timestamp=-1 if found.get("cf_timestamp") == b"-1" else _number(found, "cf_timestamp"),
        operation_id=_uuid(found, "cf_operation") if "cf_operation" in found else None,
        attempt=_number(found, "cf_attempt") if "cf_attempt" in found else None,
    )


def _by_name(headers: Any) -> dict[str, Any]:
    """One value for each name. A name of ours that comes twice is nobody's to choose from."""
    try:
        found: dict[str, Any] = dict(headers or ())
        if len(found) != len(headers or ()):
            names = [name for name, _ in headers if str(name).startswith(("ce_", "cf_"))]
            if len(set(names)) != len(names):
                raise Undecodable(Reason.UNDECODABLE_FRAME, "headers")
    except (TypeError, ValueError):
        found = {}
    return found


def _raw(found: dict[str, Any], name: str, limit: int) -> bytes:
    raw = found.get(name)
    if type(raw) is not bytes or not raw or len(raw) > limit:
        raise Undecodable(Reason.UNDECODABLE_FRAME, name)
    return raw


def _text(found: dict[str, Any], name: str, limit: int) -> str:
    raw = _raw(found, name, limit)
    text = raw.decode("latin-1")
    if not (raw.isascii() and text.isprintable()):
        raise Undecodable(Reason.UNDECODABLE_FRAME, name)
    return text


def _number(found: dict[str, Any], name: str) -> int:
    raw = found.get(name)
    if type(raw) is bytes and len(raw) < 19 and raw.isdigit():
        return int(raw)
    raw = _raw(found, name, 19)
    if not raw.isdigit() or (number := int(raw)) >= _INT64:
        raise Undecodable(Reason.UNDECODABLE_FRAME, name)
    return number


@lru_cache(maxsize=256)
def _requested_type(raw: bytes) -> str:
    name, _, kind = _text({"ce_type": raw}, "ce_type", 64).rpartition(".")
    if not name or kind != "requested":
        raise Undecodable(Reason.UNDECODABLE_FRAME, "ce_type")
    return name


def _uuid(found: dict[str, Any], name: str) -> UUID:
    raw = _raw(found, name, 36)
    digits = raw.replace(b"-", b"")
    if len(raw) != 36 or len(digits) != 32 or raw[8:24:5] != b"----":
        raise Undecodable(Reason.UNDECODABLE_FRAME, name)
    try:
        return UUID(bytes=unhexlify(digits))
    except ValueError:
        pass
    raise Undecodable(Reason.UNDECODABLE_FRAME, name)


def _travelling(original: Iterable[tuple[str, bytes | None]] | None) -> Texts:
    kept: dict[str, str] = {}
    for name, raw in original or ():
        if name in TRAVELLING and name not in kept and isinstance(raw, bytes) and 0 < len(raw) <= _TRAVELLING_BYTES:
            text = raw.decode("ascii", "replace")
            if raw.isascii() and text.isprintable():
                kept[name] = text
    return list(kept.items())
