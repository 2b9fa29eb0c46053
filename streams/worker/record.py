"""Kafka records in a worker's hands, and what reading one came to.

Reads records within bounds and never runs anything. No header is trusted for the value: its own bytes are hashed here. A message
is asked for its headers once, and through `ASKED`: the client fails for a name that is no UTF-8 and hands over a list with a hole
that kills whoever looks at it; a plain call of it, once the interpreter has sped it up, does not notice the failure.
"""

from __future__ import annotations

from contextlib import suppress
from hashlib import sha256
from operator import methodcaller
from typing import Any, NamedTuple
from uuid import UUID

from confluent_kafka import TIMESTAMP_NOT_AVAILABLE, Message

from counterfoil.core.errors import Undecodable
from counterfoil.core.reasons import Reason
from counterfoil.ledger.admission import Candidate
from counterfoil.ledger.raw_records import Raw
from counterfoil.schemas.contract import Contract
from counterfoil.schemas.envelope import Command, parse_command
from counterfoil.streams.worker.prefix import Prefix

#: A revision is an int4 in the ledger; a header that says more is not ours.
LARGEST_REVISION = 2**31 - 1

Headers = list[tuple[str, Any]]

#: A message's headers. Raises SystemError where a name is no UTF-8; never to be asked for again then.
ASKED = methodcaller("headers")


class Record(NamedTuple):
    """One record of a command or retry topic, and the partition's bookkeeping that it belongs to."""

    message: Message
    prefix: Prefix
    offset: int
    size: int  #: bytes of the value


class Readable(NamedTuple):
    """A record that decodes: whose operation it asks for, and the payload. It is not yet admitted."""

    record: Record
    headers: Headers
    candidate: Candidate
    operation_id: UUID
    payload: Any


class Unreadable(NamedTuple):
    """A record that this worker cannot handle, with its reason; `claimed` is what its headers say, where they can be read."""

    record: Record
    headers: Headers  #: none where they cannot be read
    reason: Reason
    claimed: Command | None

    @property
    def value_hash(self) -> bytes:
        """Of the value's own bytes."""
        return sha256(self.record.message.value() or b"").digest()

    @property
    def held(self) -> bool:
        """Whether a newer worker may be able to do it: kept and not given up."""
        return self.reason is Reason.SCHEMA_NOT_READ


def read(record: Record, type_name: str, road: str, contract: Contract[Any]) -> Readable | Unreadable:
    """Decode one record, once; any bytes are answered, never raised for."""
    message = record.message
    headers = _headers(message)
    claimed: Command | None = None
    try:
        claimed = parse_command(headers)
        if claimed.type != type_name:
            return Unreadable(record, headers, Reason.UNKNOWN_TYPE, None)
        if claimed.revision > LARGEST_REVISION:
            return Unreadable(record, headers, Reason.UNDECODABLE_FRAME, None)
        value = message.value()
        payload = contract.decode(value)
    except Undecodable as error:
        # Without readable headers it may still say by itself that it has no value at all.
        reason = Reason.NULL_VALUE if message.value() is None else error.reason
        return Unreadable(record, headers, reason, claimed)
    except Exception:  # noqa: BLE001 - a payload class of the user's may refuse what the contract allows
        return Unreadable(record, headers, Reason.UNDECODABLE_VALUE, claimed)
    hashed = sha256(value or b"").digest()
    candidate = Candidate(claimed.number, claimed.revision, hashed, road, record.prefix.partition, record.offset)
    return Readable(record, headers, candidate, claimed.operation_id, payload)


def killer(record: Record, *, look: bool) -> Unreadable:
    """A record that is not decoded, since that killed the process; with `look` False nothing of it but its bytes is touched."""
    headers = _headers(record.message) if look else []
    claimed: Command | None = None
    with suppress(Undecodable):
        claimed = parse_command(headers)
    return Unreadable(record, headers, Reason.KILLS_THE_PROCESS, claimed)


def raw(found: Readable | Unreadable, type_name: str, number: int | None, reason: Reason) -> Raw:
    """The record as it is kept: untouched, with its reason."""
    record, headers = found.record, found.headers
    message = record.message
    kind, milliseconds = message.timestamp()
    return Raw(
        topic=record.prefix.topic,
        partition=record.prefix.partition,
        offset=record.offset,
        timestamp_ms=None if kind == TIMESTAMP_NOT_AVAILABLE else milliseconds,
        key=_bytes(message.key()),
        value=_bytes(message.value()),
        headers=[(name, _bytes(value)) for name, value in headers],
        type=type_name,
        number=number,
        reason=reason,
    )


def _headers(message: Message) -> Headers:
    try:
        headers = ASKED(message)
    except (SystemError, UnicodeDecodeError):
        return []
    return headers if isinstance(headers, list) else []


def _bytes(value: Any) -> bytes | None:
    return value.encode() if isinstance(value, str) else value
