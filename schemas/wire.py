"""One closure for each scalar place of a contract, read from bytes that anybody may have written.

Every length is held against the bytes that are left before anything is made; a number has one range, a text no U+0000, an enum
no index outside its symbols. Raises Fault, IndexError (the bytes end too early) or UnicodeDecodeError.
"""

import datetime
import struct
from collections.abc import Callable
from decimal import Context, Decimal
from typing import Any
from uuid import UUID

from counterfoil.core.reasons import Reason
from counterfoil.schemas.scalars import EPOCH, EPOCH_DAY, Fault
from counterfoil.schemas.shape import Shape

Read = Callable[[bytes, int, list[int]], tuple[Any, int]]

_FLOAT = struct.Struct("<f").unpack_from
_DOUBLE = struct.Struct("<d").unpack_from
_SEVENTH_BIT = 128


def compile_scalar_reader(shape: Shape) -> Read:
    match shape.kind:
        case "null":
            return lambda raw, at, left: (None, at)
        case "boolean":
            return _boolean
        case "float" | "double":
            return _floating(_FLOAT if shape.kind == "float" else _DOUBLE, 4 if shape.kind == "float" else 8)
        case "string":
            return text
        case "bytes" | "fixed":
            return _fixed(shape.size) if shape.size else _bytes
        case "int" | "long":
            return _integer(1 << (31 if shape.kind == "int" else 63))
    return _converted(shape)


def long(raw: bytes, at: int) -> tuple[int, int]:
    """A zigzag number of at most ten bytes, within 64 bits."""
    part = raw[at]
    if part < _SEVENTH_BIT:
        return (part >> 1) ^ -(part & 1), at + 1
    whole, shift = part & 127, 7
    while True:
        at += 1
        part = raw[at]
        whole |= (part & 127) << shift
        if part < _SEVENTH_BIT:
            break
        shift += 7
        if shift > 63:
            raise Fault(Reason.UNDECODABLE_VALUE)
    if whole >> 64:
        raise Fault(Reason.UNDECODABLE_VALUE)
    return (whole >> 1) ^ -(whole & 1), at + 1


def _integer(bound: int) -> Read:
    def read(raw: bytes, at: int, left: list[int]) -> tuple[int, int]:
        value, at = long(raw, at)
        if not -bound <= value < bound:
            raise Fault(Reason.UNDECODABLE_VALUE)
        return value, at

    return read


def _boolean(raw: bytes, at: int, left: list[int]) -> tuple[bool, int]:
    if raw[at] > 1:
        raise Fault(Reason.UNDECODABLE_VALUE)
    return raw[at] == 1, at + 1


def _floating(unpack: Callable[[bytes, int], tuple[Any, ...]], width: int) -> Read:
    def read(raw: bytes, at: int, left: list[int]) -> tuple[float, int]:
        if at + width > len(raw):
            raise IndexError
        value = unpack(raw, at)[0]
        if value - value != 0:  # NaN or infinite: never ours, and never comparable
            raise Fault(Reason.UNDECODABLE_VALUE)
        return value, at + width

    return read


def _bytes(raw: bytes, at: int, left: list[int]) -> tuple[bytes, int]:
    size, at = long(raw, at)
    end = at + size
    if size < 0 or end > len(raw):
        raise Fault(Reason.UNDECODABLE_VALUE)
    return raw[at:end], end


def text(raw: bytes, at: int, left: list[int]) -> tuple[str, int]:
    size = raw[at]
    if size < _SEVENTH_BIT and not size & 1:
        at, size = at + 1, size >> 1
    else:
        size, at = long(raw, at)
    end = at + size
    if size < 0 or end > len(raw):
        raise Fault(Reason.UNDECODABLE_VALUE)
    value = raw[at:end].decode()
    if "\x00" in value:
        raise Fault(Reason.UNDECODABLE_VALUE)
    return value, end


def _fixed(size: int) -> Read:
    def read(raw: bytes, at: int, left: list[int]) -> tuple[bytes, int]:
        end = at + size
        if end > len(raw):
            raise IndexError
        return raw[at:end], end

    return read


def _converted(shape: Shape) -> Read:
    plain: Read
    match shape.base:
        case "string":
            plain = text
        case "int" | "long" | "enum":
            plain = _integer(1 << (63 if shape.base == "long" else 31))
        case _:
            plain = _fixed(shape.size) if shape.size else _bytes
    convert = _converter(shape)

    def read(raw: bytes, at: int, left: list[int]) -> tuple[Any, int]:
        wire, at = plain(raw, at, left)
        try:
            return convert(wire), at
        except (ValueError, OverflowError, ArithmeticError):
            pass
        raise Fault(Reason.UNDECODABLE_VALUE)

    return read


def _converter(shape: Shape) -> Callable[[Any], Any]:
    match shape.kind:
        case "decimal":
            return _decimal(shape)
        case "uuid":
            return _uuid if shape.base == "string" else lambda raw: UUID(bytes=raw)
        case "date":
            return lambda days: datetime.date.fromordinal(days + EPOCH_DAY)
        case "enum":
            return _symbol(shape)
    grain = 1000 if shape.kind == "timestamp-millis" else 1
    return lambda count: EPOCH + datetime.timedelta(microseconds=count * grain)


def _decimal(shape: Shape) -> Callable[[bytes], Decimal]:
    context, scale, bound = Context(prec=shape.precision), -shape.scale, 10**shape.precision

    def convert(raw: bytes) -> Decimal:
        unscaled = int.from_bytes(raw, "big", signed=True)
        if not -bound < unscaled < bound:
            raise ValueError
        return Decimal(unscaled).scaleb(scale, context)

    return convert


def _uuid(spelled: str) -> UUID:
    value = UUID(spelled)
    if len(spelled) != 36:  # one spelling
        raise ValueError
    return value


def _symbol(shape: Shape) -> Callable[[int], Any]:
    known = shape.symbols if shape.python in (str, None) else tuple(shape.python(symbol) for symbol in shape.symbols)

    def convert(index: int) -> Any:
        if not 0 <= index < len(known):  # Python would count -1 from the end
            raise ValueError
        return known[index]

    return convert
