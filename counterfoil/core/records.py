"""The records that cross the border between a user's functions and ours.

No payload, key or observed field in any repr. `Attempt`, `Item` and `Target` are ours to build, many a second, and are not
checked; what a user's function builds is.
"""

from collections.abc import Awaitable, Sequence
from dataclasses import field
from datetime import datetime, timedelta
from enum import Enum
from typing import Any, ClassVar, Generic, NewType, Protocol, TypeVar, Union
from uuid import UUID

from counterfoil.core.errors import Refused
from counterfoil.core.reasons import Reason
from counterfoil.core.value import Value

__all__ = [
    "FOREVER",
    "Absent",
    "Answer",
    "Asked",
    "Attempt",
    "Digest",
    "Expected",
    "Found",
    "Item",
    "Key",
    "Observation",
    "OperationId",
    "Part",
    "Receipt",
    "Record",
    "Several",
    "Target",
    "Unknown",
    "Version",
    "hours",
    "minutes",
    "seconds",
]

P = TypeVar("P")  # payload
S = TypeVar("S")  # observed shape: a frozen dataclass of what can be seen at the sink; Decimal, never float
T = TypeVar("T")

OperationId = NewType("OperationId", UUID)
Part = str | int | UUID  # no float, Decimal or datetime: one value has one spelling
Key = Part | tuple[Part, ...]
Answer = Union[T, Awaitable[T]]  # noqa: UP007 - mypy refuses `T | Awaitable[T]` as an alias

FOREVER = timedelta.max
LONGEST_ID = 512  # characters of a remote id
LARGEST_VERSION = 2**63 - 1
LARGEST_DIGEST = 64  # bytes: SHA-512


def seconds(n: float) -> timedelta:
    """A timedelta of `n` seconds."""
    return timedelta(seconds=n)


def minutes(n: float) -> timedelta:
    """A timedelta of `n` minutes."""
    return timedelta(minutes=n)


def hours(n: float) -> timedelta:
    """A timedelta of `n` hours."""
    return timedelta(hours=n)


class Record(Protocol):
    """A dataclass; that it is frozen is checked by the declaration."""

    __dataclass_fields__: ClassVar[dict[str, Any]]


class Digest(Value):
    """A content digest: equal to another or not, never older or newer. Raises Refused for one that is empty or above 64 bytes."""

    algorithm: str  #: 1 to 40 characters, as "sha256"
    value: bytes  #: 1 to 64 bytes

    def __post_init__(self) -> None:
        _text("algorithm", self.algorithm, 40)
        if not isinstance(self.value, bytes):
            raise Refused(Reason.WRONG_TYPE, path="value", subject="Digest")
        if not self.algorithm or not 1 <= len(self.value) <= LARGEST_DIGEST:
            raise Refused(Reason.NUMBER_OUT_OF_RANGE, path="value", subject="Digest")


Version = int | Digest  # an integer grows, within 64 bits


class Attempt(Value):
    """One call of the effect."""

    operation_id: OperationId
    number: int  #: 1 for the first; only rises
    key: str = field(repr=False)  #: idempotency key, the same for every attempt at one revision
    result_key: str = field(repr=False)  #: object path or row key that no other operation has
    timeout: float  #: seconds left for this call; hand it to the client
    position: int | None  #: place within the entity, rising by one; Strict only


class Item(Value, Generic[P]):
    """One operation of a batch effect."""

    payload: P = field(repr=False)
    attempt: Attempt


class Receipt(Value):
    """What the sink answered. No secrets and no payload: it is kept for ever and shown.

    Raises Refused for a remote id above 512 characters, with U+0000 or a lone surrogate; a version past 64 bits; a naive time.
    """

    remote_id: str | None = None  #: the sink's own id, at most 512 characters
    version: Version | None = None
    sink_time: datetime | None = None  #: the sink's clock, with a time zone

    def __post_init__(self) -> None:
        if self.remote_id is not None:
            _text("remote_id", self.remote_id, LONGEST_ID)
        if self.version is not None:
            _version(self.version)
        if self.sink_time is not None:
            if not isinstance(self.sink_time, datetime):
                raise Refused(Reason.WRONG_TYPE, path="sink_time")
            if self.sink_time.utcoffset() is None:
                raise Refused(Reason.NAIVE_DATETIME, path="sink_time")


class Expected(Value, Generic[S]):
    """What must be observable after the effect, from the payload alone."""

    fields: S = field(repr=False)  #: a frozen dataclass, the shape
    version: Version | None = None

    def __post_init__(self) -> None:
        if self.version is not None:
            _version(self.version)


class Target(Value, Generic[P]):
    """What a probe is asked about."""

    operation_id: OperationId
    payload: P = field(repr=False)
    key: str = field(repr=False)  #: the idempotency key that was sent
    result_key: str = field(repr=False)
    business_key: str = field(repr=False)  #: the sink's own identity for the thing
    receipt: Receipt | None  #: None when every answer was lost


class Asked(Enum):
    """By which name it was found; one found by business key may be another operation's work."""

    KEY = "key"
    RESULT_KEY = "result_key"
    REMOTE_ID = "remote_id"
    BUSINESS_KEY = "business_key"


class Found(Value, Generic[S]):
    """The sink showed it. Raises Refused as Receipt does."""

    fields: S = field(repr=False)  #: the same shape as `Expected.fields`
    asked: Asked
    remote_id: str | None = None
    version: Version | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.asked, Asked):
            raise Refused(Reason.WRONG_TYPE, path="asked")
        if self.remote_id is not None:
            _text("remote_id", self.remote_id, LONGEST_ID)
        if self.version is not None:
            _version(self.version)


class Several(Value, Generic[S]):
    """More than one: always ambiguous, never chosen from."""

    found: Sequence[Found[S]]


class Absent(Value):
    """The sink answered: not there. A 404 that may mean "no permission" is Unknown."""


class Unknown(Value):
    """No answer to rely on: no state changes. An exception of a probe means the same."""


Observation = Found[S] | Several[S] | Absent | Unknown


def _text(path: str, value: object, longest: int) -> None:
    """A text that PostgreSQL and Kafka accept; the plain case costs two C calls."""
    if not isinstance(value, str):
        raise Refused(Reason.WRONG_TYPE, path=path)
    if len(value) > longest:
        raise Refused(Reason.TEXT_TOO_LONG, path=path)
    if "\0" in value or (not value.isascii() and any("\ud800" <= letter <= "\udfff" for letter in value)):
        raise Refused(Reason.FORBIDDEN_TEXT, path=path)


def _version(value: object) -> None:
    if isinstance(value, Digest):
        return
    if not isinstance(value, int) or isinstance(value, bool):
        raise Refused(Reason.WRONG_TYPE, path="version")
    if not -LARGEST_VERSION - 1 <= value <= LARGEST_VERSION:
        raise Refused(Reason.NUMBER_OUT_OF_RANGE, path="version")
