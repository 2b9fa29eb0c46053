"""One payload dataclass with one contract, compiled once: the codec of an operation type.

Encoding refuses everything that Avro, Kafka and PostgreSQL would not carry exactly, where the caller still has a stack trace;
decoding takes any bytes and answers or raises Undecodable. Neither ever prints a value, and neither asks a registry.
"""

from functools import lru_cache
from io import BytesIO
from pathlib import Path
from typing import Any, Generic, TypeVar

from fastavro import schemaless_writer

from counterfoil.core.errors import Refused, Undecodable
from counterfoil.core.operation_type import OperationType
from counterfoil.core.reasons import Reason
from counterfoil.core.records import Record
from counterfoil.schemas.definition import Definition, read_definition
from counterfoil.schemas.fit import fitted
from counterfoil.schemas.frame import frame, framed_id
from counterfoil.schemas.lock import Locked, RegistryLock, find_lock, read_lock
from counterfoil.schemas.plain import tags
from counterfoil.schemas.reader import compile_reader
from counterfoil.schemas.scalars import Fault
from counterfoil.schemas.writer import MOST_COST, compile_writer

R = TypeVar("R", bound=Record)

MAX_BYTES = 900_000  #: of one value: a broker's default of 1 MiB, less room for key, headers and batch


class Contract(Generic[R]):
    """The codec between payloads of one dataclass and framed values. Thread safe; holds no payload."""

    def __init__(self, payload: type[R], definition: Definition, lock: RegistryLock, max_bytes: int = MAX_BYTES) -> None:
        shape = fitted(definition.shape, payload)
        self._lock = lock
        self._entry: Locked = lock.entry(definition)
        self._frame = frame(self._entry.id)
        self._plain = definition.plain
        self._walk = compile_writer(shape)
        self._read = compile_reader(shape)
        self.shape = shape
        self.tags = tags(definition.text)
        self.payload = payload
        self.subject = definition.subject
        self.schema_id = self._entry.id
        self.version = self._entry.version
        self.max_bytes = max_bytes

    def __repr__(self) -> str:
        return f"Contract({self.subject}, version {self.version})"

    def encode_both(self, payload: R) -> tuple[bytes, bytes]:
        """The framed value and the canonical form of the payload, in one pass; raises Refused."""
        wire, canonical = self._walked(payload)
        out = BytesIO()
        out.write(self._frame)
        schemaless_writer(out, self._plain, wire, strict=True)
        value = out.getvalue()
        if len(value) > self.max_bytes:
            raise Refused(Reason.PAYLOAD_TOO_LARGE, subject=self.subject)
        return value, canonical

    def encode(self, payload: R) -> bytes:
        """The framed value; raises Refused with the field's path."""
        return self.encode_both(payload)[0]

    def canonical(self, payload: R) -> bytes:
        """Canonical form 1 of the payload, for content digests; raises Refused as `encode` does."""
        return self._walked(payload)[1]

    def decode(self, value: bytes | None) -> R:
        """The payload that a framed value holds, every byte of it; raises Undecodable."""
        if value is None:
            raise Undecodable(Reason.NULL_VALUE)
        if len(value) > self.max_bytes:
            raise Undecodable(Reason.VALUE_TOO_LARGE)
        if value[:5] != self._frame:
            found = framed_id(value)
            raise Undecodable(Reason.SCHEMA_NOT_READ if self._lock.knows(found) else Reason.UNKNOWN_SCHEMA_ID)
        try:
            payload, end = self._read(value, 5, [MOST_COST])
        except Fault as fault:
            reason, path = fault.reason, fault.path
        else:
            if end == len(value):
                return payload  # type: ignore[no-any-return]
            reason, path = Reason.UNDECODABLE_VALUE, ""
        raise Undecodable(reason, path or None)

    def _walked(self, payload: R) -> tuple[Any, bytes]:
        out: list[bytes] = []
        try:
            return self._walk(payload, out.append, [MOST_COST, self.max_bytes]), b"".join(out)
        except Fault as fault:
            reason, path = fault.reason, fault.path
        raise Refused(reason, path=path or None, subject=self.subject)


@lru_cache(maxsize=1024)
def _compiled(payload: type[Any], path: Path, lock: Path | None) -> Contract[Any]:
    return Contract(payload, read_definition(path), read_lock(find_lock(path, lock)))


def contract_of(operation_type: OperationType[R], lock: Path | None = None) -> Contract[R]:
    """The compiled contract of a type, remembered for the life of the process; Refused where file, lock and class differ."""
    return _compiled(operation_type.payload, operation_type.contract, lock)
