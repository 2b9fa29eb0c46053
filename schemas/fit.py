"""Holds a payload dataclass against its contract, field by field, before the first value is seen.

What it accepts can be written and read back as the same Python types. It reads annotations only: no value, no default factory.
"""

import contextlib
import dataclasses
import datetime
import types
from collections.abc import Mapping, Sequence
from decimal import Decimal
from enum import Enum
from typing import Any, Literal, NewType, Union, get_args, get_origin, get_type_hints
from uuid import UUID

from counterfoil.core.errors import Refused
from counterfoil.schemas.scalars import Fault, compile_scalar
from counterfoil.schemas.shape import Field, Shape, mismatch

_PYTHON: dict[str, type] = {
    "null": type(None),
    "boolean": bool,
    "int": int,
    "long": int,
    "float": float,
    "double": float,
    "bytes": bytes,
    "fixed": bytes,
    "string": str,
    "decimal": Decimal,
    "uuid": UUID,
    "date": datetime.date,
    "timestamp-millis": datetime.datetime,
    "timestamp-micros": datetime.datetime,
}
#: Kinds whose default the codec can write for a field that the dataclass leaves to the contract.
_CONSTANT = frozenset({"null", "boolean", "int", "long", "float", "double", "string"})
_LONGEST_DEFAULT = 10_000


def fitted(shape: Shape, hint: Any, path: str = "") -> Shape:
    """The same shape with the Python type of each place; Refused with contract_mismatch and the path where they differ."""
    hint = _resolved(hint)
    match shape.kind:
        case "record":
            return _record(shape, hint, path)
        case "union":
            return _union(shape, hint, path)
        case "enum":
            return _enum(shape, hint, path)
        case "array":
            return _array(shape, hint, path)
        case "map":
            if get_origin(hint) not in (dict, Mapping) or _resolved(get_args(hint)[0]) is not str:
                raise mismatch(path, "the contract says map: annotate it dict[str, T] or Mapping[str, T]")
            return dataclasses.replace(shape, items=(fitted(shape.items[0], get_args(hint)[1], path + "{}"),), python=dict)
    wanted = _PYTHON[shape.kind]
    if hint is not wanted:
        raise mismatch(path, f"the contract says {shape.kind}: annotate it {wanted.__name__}")
    return dataclasses.replace(shape, python=wanted)


def constant(field: Field) -> Any:
    """What the writer is handed for a field that only the contract has: its default, where that is a plain one."""
    shape = field.shape
    branch = shape.items[0] if shape.kind == "union" else shape
    wire: Any = field
    if branch.kind in _CONSTANT:
        with contextlib.suppress(Fault):
            wire = compile_scalar(branch)(field.default, lambda piece: None, [0, _LONGEST_DEFAULT])
    if wire is field:
        raise mismatch(field.name, "the payload has no such field, and its default is not null, a number, a text or a bool")
    return (branch.branch, wire) if shape.kind == "union" else wire


def _resolved(hint: Any) -> Any:
    while True:
        if isinstance(hint, NewType):
            hint = hint.__supertype__
        elif hint is None:
            return type(None)
        elif type(hint).__name__ == "TypeAliasType":
            hint = hint.__value__
        else:
            return hint


def _record(shape: Shape, hint: Any, path: str) -> Shape:
    if not (isinstance(hint, type) and dataclasses.is_dataclass(hint)):
        raise mismatch(path, f"the contract says record {shape.name}: annotate it with a frozen dataclass")
    hints = _hints(hint, path)
    named = {each.name: each for each in shape.fields}
    own = {each.name: each for each in dataclasses.fields(hint)}
    for name, each in own.items():
        if name not in named:
            raise mismatch(_below(path, name), f"the contract has no such field in {shape.name}")
        if not each.init:
            raise mismatch(_below(path, name), "a field with init=False cannot be read back")
    fields = []
    for each_field in shape.fields:
        below = _below(path, each_field.name)
        if each_field.name in own:
            fitting = fitted(each_field.shape, hints[each_field.name], below)
            fields.append(dataclasses.replace(each_field, shape=fitting))
        elif each_field.has_default:
            constant(each_field)
            fields.append(dataclasses.replace(each_field, own=False))
        else:
            raise mismatch(below, "the payload has no such field, and the contract has no default for it")
    return dataclasses.replace(shape, fields=tuple(fields), python=hint)


def _hints(owner: type, path: str) -> dict[str, Any]:
    try:
        return get_type_hints(owner)
    except (NameError, TypeError, AttributeError):
        pass
    raise mismatch(path, f"the annotations of {owner.__name__} name something that is not in its module")


def _union(shape: Shape, hint: Any, path: str) -> Shape:
    members = list(get_args(hint)) if get_origin(hint) in (Union, types.UnionType) else [hint]
    branches = []
    for branch in shape.items:
        for member in members:
            if (fit := _fits(branch, member, path)) is not None:
                members.remove(member)
                branches.append(fit)
                break
        else:
            if len(shape.items) == 2 and len(members) == 1 and branch.kind not in ("null", "union"):
                fitted(branch, members[0], path)  # one candidate is left: say what is wrong with it
            raise mismatch(path, f"the contract's union has {branch.name or branch.kind}, the annotation has not")
    if members:
        raise mismatch(path, "the annotation allows a type that the contract's union has not")
    return dataclasses.replace(shape, items=tuple(branches))


def _fits(branch: Shape, member: Any, path: str) -> Shape | None:
    try:
        return fitted(branch, member, path)
    except Refused:
        return None


def _enum(shape: Shape, hint: Any, path: str) -> Shape:
    if hint is str:
        return dataclasses.replace(shape, python=str)
    symbols = set(shape.symbols)
    if get_origin(hint) is Literal and set(get_args(hint)) == symbols:
        return dataclasses.replace(shape, python=str)
    if isinstance(hint, type) and issubclass(hint, Enum) and {member.value for member in hint} == symbols:
        return dataclasses.replace(shape, python=hint)
    raise mismatch(path, f"the contract says enum {shape.name}: annotate it str, or an Enum or Literal of exactly its symbols")


def _array(shape: Shape, hint: Any, path: str) -> Shape:
    origin, arguments = get_origin(hint), get_args(hint)
    open_tuple = origin is tuple and len(arguments) == 2 and arguments[1] is Ellipsis
    if not (open_tuple or origin in (list, Sequence)):
        raise mismatch(path, "the contract says array: annotate it tuple[T, ...], list[T] or Sequence[T]")
    container = list if origin is list else tuple
    return dataclasses.replace(shape, items=(fitted(shape.items[0], arguments[0], path + "[]"),), python=container)


def _below(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
