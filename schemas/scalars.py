"""One closure for each scalar place of a contract: exact type, range and text rules, then canonical bytes and wire value.

A subclass of the declared type is taken as its plain value (a StrEnum as its text); a bool is never a number.
"""

import datetime
import math
import struct
from collections.abc import Callable
from decimal import Clamped, Context, Decimal, DivisionByZero, Inexact, InvalidOperation, Overflow
from typing import Any
from unicodedata import normalize
from uuid import UUID

from counterfoil.core import canonical
from counterfoil.core.reasons import Reason
from counterfoil.schemas.shape import Shape

Put = Callable[[bytes], object]
Left = list[int]  #: what may still come: the cost of items of arrays and maps, and bytes of texts and bytes fields
Write = Callable[[Any, Put, Left], Any]

EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
EPOCH_DAY = EPOCH.toordinal()
_EARLIEST = datetime.datetime.min.replace(tzinfo=datetime.UTC)
_LATEST = datetime.datetime.max.replace(tzinfo=datetime.UTC)
_EXACT_INT = 1 << 53
_FLOAT = struct.Struct(">f")


class Fault(Exception):
    """A refusal on its way up; each level puts its own name in front of the path."""

    def __init__(self, reason: Reason) -> None:
        super().__init__()
        self.reason = reason
        self.path = ""

    def below(self, name: str) -> "Fault":
        dot = "." if self.path and self.path[0] not in "[{" else ""
        self.path = f"{name}{dot}{self.path}"
        return self


def compile_scalar(shape: Shape) -> Write:
    match shape.kind:
        case "null":
            return _null
        case "boolean":
            return _boolean
        case "int" | "long":
            return _integer(1 << (31 if shape.kind == "int" else 63))
        case "float" | "double":
            return _double(single=shape.kind == "float")
        case "string":
            return write_text
        case "bytes" | "fixed":
            return _bytes(shape.size)
        case "decimal":
            return _decimal(shape)
        case "uuid":
            return _uuid(as_text=shape.base == "string")
        case "date":
            return _date
        case "timestamp-millis" | "timestamp-micros":
            return _instant(1000 if shape.kind == "timestamp-millis" else 1)
    return _enum(shape)


def _null(value: Any, put: Put, left: Left) -> None:
    if value is not None:
        raise Fault(Reason.WRONG_TYPE)
    put(canonical.NULL)


def _boolean(value: Any, put: Put, left: Left) -> bool:
    if value is True:
        put(canonical.TRUE)
        return True
    if value is False:
        put(canonical.FALSE)
        return False
    raise Fault(Reason.WRONG_TYPE)


def _integer(bound: int) -> Write:
    lowest = -bound

    def write(value: Any, put: Put, left: Left) -> int:
        if type(value) is not int:
            if isinstance(value, bool) or not isinstance(value, int):
                raise Fault(Reason.WRONG_TYPE)
            value = int(value)
        if not lowest <= value < bound:
            raise Fault(Reason.NUMBER_OUT_OF_RANGE)
        raw = b"%d" % value
        put(b"i%d:%b" % (len(raw), raw))  # canonical.of_integer, in line
        return value  # type: ignore[no-any-return]

    return write


def _double(*, single: bool) -> Write:
    def write(value: Any, put: Put, left: Left) -> float:
        if type(value) is not float:
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise Fault(Reason.WRONG_TYPE)
            if isinstance(value, int) and not -_EXACT_INT <= value <= _EXACT_INT:
                raise Fault(Reason.NUMBER_OUT_OF_RANGE)
            value = float(value)
        if not math.isfinite(value):
            raise Fault(Reason.NOT_A_NUMBER)
        if single and not _is_single(value):
            raise Fault(Reason.NUMBER_OUT_OF_RANGE)
        put(canonical.of_double(value))
        return value  # type: ignore[no-any-return]

    return write


def _is_single(value: float) -> bool:
    try:
        return bool(_FLOAT.unpack(_FLOAT.pack(value))[0] == value)
    except OverflowError:
        return False


def write_text(value: Any, put: Put, left: Left) -> str:
    """Text that PostgreSQL, Avro and Kafka all take. NFC is the canonical form's: the value itself goes out as it came."""
    if type(value) is not str:
        if not isinstance(value, str):
            raise Fault(Reason.WRONG_TYPE)
        value = str.__str__(value)
    left[1] -= len(value)
    if left[1] < 0:
        raise Fault(Reason.PAYLOAD_TOO_LARGE)
    if "\x00" in value:
        raise Fault(Reason.FORBIDDEN_TEXT)
    raw = value.encode() if value.isascii() else _nfc(value)
    put(b"s%d:%b" % (len(raw), raw))  # canonical.of_text, in line
    return value  # type: ignore[no-any-return]


def _nfc(value: str) -> bytes:
    try:
        return normalize("NFC", value).encode()
    except UnicodeEncodeError:
        pass
    raise Fault(Reason.FORBIDDEN_TEXT)


def _bytes(size: int) -> Write:
    def write(value: Any, put: Put, left: Left) -> bytes:
        if not isinstance(value, bytes):
            raise Fault(Reason.WRONG_TYPE)
        if size and len(value) != size:
            raise Fault(Reason.PAYLOAD_INVALID)
        left[1] -= len(value)
        if left[1] < 0:
            raise Fault(Reason.PAYLOAD_TOO_LARGE)
        put(canonical.of_bytes(value))
        return value

    return write


def _decimal(shape: Shape) -> Write:
    # One quantize refuses both: a finer value is Inexact, a longer one InvalidOperation.
    context = Context(prec=shape.precision, traps=[Inexact, InvalidOperation, Overflow, DivisionByZero])
    context.traps[Clamped] = False
    grain, scale, size = Decimal((0, (1,), -shape.scale)), shape.scale, shape.size

    def write(value: Any, put: Put, left: Left) -> bytes:
        if not isinstance(value, Decimal):
            raise Fault(Reason.WRONG_TYPE)
        if not value.is_finite():
            raise Fault(Reason.NOT_A_NUMBER)
        try:
            unscaled = int(value.quantize(grain, None, context).scaleb(scale, context))
        except (Inexact, InvalidOperation):
            unscaled = None
        if unscaled is None:
            raise Fault(Reason.DECIMAL_SCALE)
        put(canonical.of_decimal(unscaled))
        return unscaled.to_bytes(size or (unscaled.bit_length() + 8) // 8, "big", signed=True)

    return write


def _uuid(*, as_text: bool) -> Write:
    def write(value: Any, put: Put, left: Left) -> str | bytes:
        if not isinstance(value, UUID):
            raise Fault(Reason.WRONG_TYPE)
        put(canonical.of_uuid(value))
        return str(value) if as_text else value.bytes

    return write


def _date(value: Any, put: Put, left: Left) -> int:
    if isinstance(value, datetime.datetime) or not isinstance(value, datetime.date):
        raise Fault(Reason.WRONG_TYPE)
    days = value.toordinal() - EPOCH_DAY
    put(canonical.of_date(days))
    return days


def _instant(grain: int) -> Write:
    """Aware only; finer than the contract's grain is refused, not cut off."""

    def write(value: Any, put: Put, left: Left) -> int:
        if not isinstance(value, datetime.datetime):
            raise Fault(Reason.WRONG_TYPE)
        if value.utcoffset() is None:
            raise Fault(Reason.NAIVE_DATETIME)
        if not _EARLIEST <= value <= _LATEST:
            raise Fault(Reason.NUMBER_OUT_OF_RANGE)
        since = value - EPOCH
        microseconds = (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds
        if microseconds % grain or getattr(value, "nanosecond", 0):
            raise Fault(Reason.NUMBER_OUT_OF_RANGE)
        put(canonical.of_instant(microseconds))
        return microseconds // grain

    return write


def _enum(shape: Shape) -> Write:
    spelled = {symbol: canonical.of_symbol(symbol) for symbol in shape.symbols}
    members = shape.python if shape.python is not str else None

    def write(value: Any, put: Put, left: Left) -> str:
        if members is not None:
            if not isinstance(value, members):
                raise Fault(Reason.WRONG_TYPE)
            value = value.value
        elif isinstance(value, str):
            value = str.__str__(value)
        else:
            raise Fault(Reason.WRONG_TYPE)
        if value not in spelled:
            raise Fault(Reason.NOT_A_SYMBOL)
        put(spelled[value])
        return value  # type: ignore[no-any-return]

    return write
