"""State records: what the compacted topic says of an operation after each reported transition.

Written on the hot path from the ledger's own columns, so without a validator and straight to Avro's bytes; a test holds every
byte against fastavro. Read, by sweep and audit, with the same bounds as a payload. Holds no payload: digests are keyed.
"""

from datetime import datetime
from functools import lru_cache
from typing import Any, NamedTuple

from counterfoil.core.errors import Undecodable
from counterfoil.core.reasons import Reason
from counterfoil.schemas.frame import frame, framed_id
from counterfoil.schemas.lock import Locked, RegistryLock
from counterfoil.schemas.reader import compile_reader
from counterfoil.schemas.scalars import EPOCH, Fault
from counterfoil.schemas.system import state_definition

MAX_BYTES = 64 * 1024


class StateRecord(NamedTuple):
    """One reported transition; fields as in `avro/state_record.avsc`."""

    epoch: int
    sequence: int
    type: str
    entity: str
    version: str | None
    state: str
    attempt: int
    revision: int
    remote_id: str | None
    digest_secret: int
    business_key_digest: bytes | None
    expected_digest: bytes | None
    reason: str
    at: datetime


class StateContract:
    """The codec of state records under one lock. Thread safe."""

    def __init__(self, lock: RegistryLock) -> None:
        definition = state_definition()
        entry = lock.entry(definition)
        self._lock = lock
        self._frame = frame(entry.id)
        fields = definition.shape.fields
        self._names = [each.name for each in fields]
        self._places = [compile_reader(each.shape) for each in fields]
        symbols = next(each.shape.symbols for each in fields if each.name == "state")
        self._states = {symbol: _number(index) for index, symbol in enumerate(symbols) if index}
        self.subject = definition.subject
        self.schema_id = entry.id
        self.version = entry.version

    def encode(self, record: StateRecord) -> bytes:
        """The framed value. Takes the ledger's own values as they are; KeyError for a state that is none."""
        epoch, sequence, kind, entity, version, state, attempt, revision, remote, secret, business, expected, reason, at = record
        return b"".join(
            (
                self._frame,
                _number(epoch),
                _number(sequence),
                _word(kind),
                _text(entity),
                b"\x00" if version is None else b"\x02" + _text(version),
                self._states[state],
                _number(attempt),
                _number(revision),
                b"\x00" if remote is None else b"\x02" + _text(remote),
                _number(secret),
                b"\x00" if business is None else b"\x02" + _number(len(business)) + business,
                b"\x00" if expected is None else b"\x02" + _number(len(expected)) + expected,
                _word(reason),
                _moment(at),
            )
        )

    def decode(self, value: bytes | None) -> StateRecord:
        """Raises Undecodable; NULL_VALUE for the record that ends a key."""
        if value is None:
            raise Undecodable(Reason.NULL_VALUE)
        if len(value) > MAX_BYTES:
            raise Undecodable(Reason.VALUE_TOO_LARGE)
        if value[:5] != self._frame:
            known = self._lock.knows(framed_id(value))
            raise Undecodable(Reason.SCHEMA_NOT_READ if known else Reason.UNKNOWN_SCHEMA_ID)
        values: list[Any] = []
        at, left = 5, [0]
        try:
            for place in self._places:
                made, at = place(value, at, left)
                values.append(made)
        except (Fault, IndexError, UnicodeDecodeError):
            at = -1
        if at != len(value) or values[5] not in self._states:
            raise Undecodable(Reason.UNDECODABLE_VALUE, self._names[len(values)] if at < 0 else None)
        return StateRecord._make(values)


@lru_cache(maxsize=64)
def state_codec(schema_id: int) -> StateContract:
    """The codec under an id that is known without the lock's file, as the ledger keeps it; remembered."""
    definition = state_definition()
    return StateContract(RegistryLock({definition.subject: Locked(1, schema_id, definition.sha256)}))


def _varint(value: int) -> bytes:
    """Avro's zigzag number; 64 bits at most."""
    rest = (value << 1) ^ (value >> 63)
    out = bytearray()
    while rest > 127:
        out.append(rest & 127 | 128)
        rest >>= 7
    out.append(rest)
    return bytes(out)


@lru_cache(maxsize=64)
def _moment(at: datetime) -> bytes:
    """The ledger's time: one for all records of a batch."""
    since = at - EPOCH
    return _varint((since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds)


_SMALL = tuple(_varint(value) for value in range(1024))


def _number(value: int) -> bytes:
    return _SMALL[value] if 0 <= value < 1024 else _varint(value)


def _text(value: str) -> bytes:
    raw = value.encode()
    return _number(len(raw)) + raw


@lru_cache(maxsize=4096)
def _word(value: str) -> bytes:
    """Of a closed list: types and reasons."""
    return _text(value)
