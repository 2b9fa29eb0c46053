"""Compiles a shape into a bounded reader of Avro bytes that builds the payload dataclass in the same pass.

Made for bytes that anybody may have written: every length is held against the bytes that are left before anything is made, the
items of arrays and maps are counted by their cost over the whole value, depth is the contract's own. It answers or raises Fault,
IndexError (the bytes end too early) or UnicodeDecodeError; `contract` turns all three into Undecodable.
"""

from collections.abc import Callable
from dataclasses import fields as dataclass_fields
from typing import Any

from counterfoil.core.reasons import Reason
from counterfoil.schemas.scalars import Fault
from counterfoil.schemas.shape import BLOCK_COST, Shape, item_cost
from counterfoil.schemas.wire import Read, compile_scalar_reader, long, text


def compile_reader(shape: Shape) -> Read:
    """A function of (bytes, place, [cost left]) that returns the value and the place after it."""
    match shape.kind:
        case "record":
            return _record(shape)
        case "union":
            return _union(shape)
        case "array":
            return _array(shape)
        case "map":
            return _map(shape)
    return compile_scalar_reader(shape)


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


def _block(raw: bytes, at: int, left: list[int], each: int) -> tuple[int, int]:
    """How many items the next block has: never more than bytes are left, nor than may still come where one costs `each`."""
    count, at = long(raw, at)
    if count < 0:
        count = -count
        size, at = long(raw, at)
        if not 0 <= size <= len(raw) - at:
            raise Fault(Reason.UNDECODABLE_VALUE)
    left[0] -= count * each
    if count > len(raw) - at or left[0] < 0:
        raise Fault(Reason.UNDECODABLE_VALUE)
    return count, at


def _array(shape: Shape) -> Read:
    item = compile_reader(shape.items[0])
    container, each = shape.python or list, item_cost(shape)

    def read(raw: bytes, at: int, left: list[int]) -> tuple[Any, int]:
        values: list[Any] = []
        try:
            while True:
                count, at = _block(raw, at, left, each)
                if not count:
                    return container(values), at
                if values:
                    left[0] -= BLOCK_COST
                for _ in range(count):
                    value, at = item(raw, at, left)
                    values.append(value)
        except Fault as fault:
            raise fault.below(f"[{len(values)}]") from None

    return read


def _map(shape: Shape) -> Read:
    item, each = compile_reader(shape.items[0]), item_cost(shape)

    def read(raw: bytes, at: int, left: list[int]) -> tuple[Any, int]:
        values: dict[str, Any] = {}
        try:
            while True:
                count, at = _block(raw, at, left, each)
                if not count:
                    return values, at
                if values:
                    left[0] -= BLOCK_COST
                for _ in range(count):
                    name, at = text(raw, at, left)
                    if name in values:
                        raise Fault(Reason.UNDECODABLE_VALUE)
                    values[name], at = item(raw, at, left)
        except Fault as fault:
            raise fault.below(f"{{{len(values)}}}") from None

    return read
