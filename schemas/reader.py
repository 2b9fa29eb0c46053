"""Compiles a shape into a bounded reader of Avro bytes that builds the payload dataclass in the same pass.

Made for bytes that anybody may have written: every length is held against the bytes that are left before anything is made,
items of arrays and maps are counted over the whole value, depth is the contract's own. It answers or raises Fault, IndexError
(the bytes end too early) or UnicodeDecodeError; `contract` turns all three into Undecodable.
"""

import datetime
import struct
from collections.abc import Callable
from dataclasses import fields as dataclass_fields
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


def compile_reader(shape: Shape) -> Read:
    """A function of (bytes, place, [items left]) that returns the value and the place after it."""
    match shape.kind:
        case "record":
            return _record(shape)
        case "union":
            return _union(shape)
        case "array":
            return _array(shape)
        case "map":
            return _map(shape)
        case "null":
            return lambda raw, at, left: (None, at)
        case "boolean":
            return _boolean
        case "float" | "double":
            return _floating(_FLOAT if shape.kind == "float" else _DOUBLE, 4 if shape.kind == "float" else 8)
        case "string":
            return _text
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


def _text(raw: bytes, at: int, left: list[int]) -> tuple[str, int]:
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
            plain = _text
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


def _uuid(text: str) -> UUID:
    value = UUID(text)
    if len(text) != 36:  # one spelling
        raise ValueError
    return value


def _symbol(shape: Shape) -> Callable[[int], Any]:
    known = shape.symbols if shape.python in (str, None) else tuple(shape.python(symbol) for symbol in shape.symbols)

    def convert(index: int) -> Any:
        if not 0 <= index < len(known):  # Python would count -1 from the end
            raise ValueError
        return known[index]

    return convert


def _record(shape: Shape) -> Read:
    names = [each.name for each in shape.fields]
    places = [compile_reader(each.shape) for each in shape.fields]
    own = [each.name for each in shape.fields if each.own]
    build = _builder(shape, own) if shape.python else (lambda values: None)
    all_own = len(own) == len(places)
    kept = [each.own for each in shape.fields]

    def read(raw: bytes, at: int, left: list[int]) -> tuple[Any, int]:
        values: list[Any] = []
        try:
            for place in places:
                value, at = place(raw, at, left)
                values.append(value)
        except Fault as fault:
            raise fault.below(names[len(values)]) from None
        except (IndexError, UnicodeDecodeError):
            pass
        else:
            if not all_own:
                values = [value for value, keep in zip(values, kept, strict=True) if keep]
            return build(values), at
        raise Fault(Reason.UNDECODABLE_VALUE).below(names[len(values)])

    return read


def _builder(shape: Shape, own: list[str]) -> Callable[[list[Any]], Any]:
    payload = shape.python
    declared = dataclass_fields(payload)
    plain = [each.name for each in declared] == own and not any(each.kw_only for each in declared)

    def build(values: list[Any]) -> Any:
        try:
            return payload(*values) if plain else payload(**dict(zip(own, values, strict=True)))
        except Exception:  # noqa: BLE001, S110  # the user's own __post_init__ may raise anything, with the value in its text
            pass
        raise Fault(Reason.UNDECODABLE_VALUE)

    return build


def _union(shape: Shape) -> Read:
    branches = tuple(compile_reader(each) for each in shape.items)
    count = len(branches)

    def read(raw: bytes, at: int, left: list[int]) -> tuple[Any, int]:
        index, at = long(raw, at)
        if not 0 <= index < count:
            raise Fault(Reason.UNDECODABLE_VALUE)
        return branches[index](raw, at, left)

    return read


def _block(raw: bytes, at: int, left: list[int]) -> tuple[int, int]:
    """How many items the next block has: never more than bytes are left, nor than items may still come."""
    count, at = long(raw, at)
    if count < 0:
        count = -count
        size, at = long(raw, at)
        if not 0 <= size <= len(raw) - at:
            raise Fault(Reason.UNDECODABLE_VALUE)
    left[0] -= count
    if count > len(raw) - at or left[0] < 0:
        raise Fault(Reason.UNDECODABLE_VALUE)
    return count, at


def _array(shape: Shape) -> Read:
    item = compile_reader(shape.items[0])
    container = shape.python or list

    def read(raw: bytes, at: int, left: list[int]) -> tuple[Any, int]:
        values: list[Any] = []
        try:
            while True:
                count, at = _block(raw, at, left)
                if not count:
                    return container(values), at
                for _ in range(count):
                    value, at = item(raw, at, left)
                    values.append(value)
        except Fault as fault:
            raise fault.below(f"[{len(values)}]") from None

    return read


def _map(shape: Shape) -> Read:
    item = compile_reader(shape.items[0])

    def read(raw: bytes, at: int, left: list[int]) -> tuple[Any, int]:
        values: dict[str, Any] = {}
        try:
            while True:
                count, at = _block(raw, at, left)
                if not count:
                    return values, at
                for _ in range(count):
                    name, at = _text(raw, at, left)
                    if name in values:
                        raise Fault(Reason.UNDECODABLE_VALUE)
                    values[name], at = item(raw, at, left)
        except Fault as fault:
            raise fault.below(f"{{{len(values)}}}") from None

    return read
