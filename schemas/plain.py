"""Payloads as plain JSON values and back, for people: shown with tagged fields masked, and corrected field by field.

A field that the contract tags `pii` is masked whole, whatever is below it, and so is its difference. No error here holds a value.
"""

import datetime
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal, InvalidOperation
from enum import Enum
from typing import Any
from uuid import UUID

import orjson

from counterfoil.core.errors import Refused
from counterfoil.core.reasons import Reason
from counterfoil.schemas.shape import Shape


class Masked(str):
    """What stands in the place of a value: the class of what it is."""

    __slots__ = ()


def tags(normal_form: bytes) -> Mapping[tuple[str, str], str]:
    """(full name of a record, field) → class, for every field that a contract tags."""
    found: dict[tuple[str, str], str] = {}

    def walk(schema: Any) -> None:
        if isinstance(schema, list):
            for each in schema:
                walk(each)
        elif isinstance(schema, dict):
            for each in schema.get("fields", ()):
                if "pii" in each:
                    found[schema["name"], each["name"]] = str(each["pii"])
                walk(each["type"])
            for below in ("items", "values"):
                walk(schema.get(below))

    walk(orjson.loads(normal_form))
    return found


def to_plain(shape: Shape, value: Any, masks: Mapping[tuple[str, str], str]) -> Any:
    """JSON values of a payload; what is tagged is `Masked`. With no masks, what `from_plain` takes back."""
    match shape.kind:
        case "record":
            return {
                each.name: Masked(f"[{masks[shape.name, each.name]}]")
                if (shape.name, each.name) in masks
                else to_plain(each.shape, getattr(value, each.name), masks)
                for each in shape.fields
                if each.own
            }
        case "array":
            return [to_plain(shape.items[0], each, masks) for each in value]
        case "map":
            return {name: to_plain(shape.items[0], each, masks) for name, each in value.items()}
        case "union":
            return to_plain(_branch(shape, value), value, masks)
    return _scalar(value)


def _branch(shape: Shape, value: Any) -> Shape:
    for each in shape.items:
        python = each.python if isinstance(each.python, type) else object
        if type(value) is python or ((each.kind == "null") == (value is None) and isinstance(value, python)):
            return each
    return shape.items[-1]


def _scalar(value: Any) -> Any:
    match value:
        case Enum():
            return value.value
        case bytes():
            return value.hex()
        case Decimal() | UUID():
            return str(value)
        case datetime.date():  # a datetime is one
            return value.isoformat()
    return value


def from_plain(shape: Shape, plain: Any, path: str = "") -> Any:
    """The payload that JSON values mean. Raises Refused (wrong_type, missing_field, unknown_field) with the path."""
    match shape.kind:
        case "record":
            return _record(shape, plain, path)
        case "array":
            if not isinstance(plain, list):
                raise _wrong(path)
            return shape.python(from_plain(shape.items[0], each, f"{path}[{place}]") for place, each in enumerate(plain))
        case "map":
            if not isinstance(plain, dict):
                raise _wrong(path)
            return {name: from_plain(shape.items[0], each, f"{path}{{}}") for name, each in plain.items()}
        case "union":
            return _union(shape, plain, path)
    try:
        return _READ[shape.kind](shape, plain)
    except (ValueError, TypeError, InvalidOperation, KeyError):
        raise _wrong(path) from None


def _record(shape: Shape, plain: Any, path: str) -> Any:
    if not isinstance(plain, dict):
        raise _wrong(path)
    own = {each.name: each for each in shape.fields if each.own}
    for name in plain:
        if name not in own:
            raise Refused(Reason.UNKNOWN_FIELD, path=_below(path, "…"))
    for name in own:
        if name not in plain:
            raise Refused(Reason.MISSING_FIELD, path=_below(path, name))
    values = {name: from_plain(each.shape, plain[name], _below(path, name)) for name, each in own.items()}
    try:
        return shape.python(**values)
    except Exception:  # noqa: BLE001, S110  # the user's own __post_init__ may raise anything, with the value in its text
        pass
    raise Refused(Reason.PAYLOAD_INVALID, path=path or None)


def _union(shape: Shape, plain: Any, path: str) -> Any:
    refused: Refused | None = None
    for each in shape.items:
        if (each.kind == "null") != (plain is None):
            continue
        try:
            return from_plain(each, plain, path)
        except Refused as error:
            refused = error
    raise refused or _wrong(path)


def _exact(kind: type) -> Callable[[Shape, Any], Any]:
    def read(shape: Shape, plain: Any) -> Any:
        if type(plain) is not kind:
            raise TypeError
        return plain

    return read


def _float(shape: Shape, plain: Any) -> float:
    if isinstance(plain, bool) or not isinstance(plain, int | float):
        raise TypeError
    return float(plain)


def _decimal(shape: Shape, plain: Any) -> Decimal:
    if isinstance(plain, bool) or not isinstance(plain, str | int):
        raise TypeError  # a JSON number with a point has lost its exact value on the way
    return Decimal(plain)


def _enum(shape: Shape, plain: Any) -> Any:
    if plain not in shape.symbols:
        raise ValueError
    return plain if shape.python is str else shape.python(plain)


_READ: Mapping[str, Callable[[Shape, Any], Any]] = {
    "null": _exact(type(None)),
    "boolean": _exact(bool),
    "int": _exact(int),
    "long": _exact(int),
    "float": _float,
    "double": _float,
    "string": _exact(str),
    "bytes": lambda shape, plain: bytes.fromhex(plain),
    "fixed": lambda shape, plain: bytes.fromhex(plain),
    "decimal": _decimal,
    "uuid": lambda shape, plain: UUID(plain),
    "date": lambda shape, plain: datetime.date.fromisoformat(plain),
    "timestamp-millis": lambda shape, plain: datetime.datetime.fromisoformat(plain),
    "timestamp-micros": lambda shape, plain: datetime.datetime.fromisoformat(plain),
    "enum": _enum,
}


def patched(plain: Any, patch: Any) -> Any:
    """A JSON document with a merge patch applied (RFC 7386), but that null is a value and never takes a field away."""
    if not isinstance(patch, dict) or not isinstance(plain, dict):
        return patch
    return {**plain, **{name: patched(plain.get(name), value) for name, value in patch.items()}}


def differences(before: Any, after: Any, path: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Path, old and new value of each place that differs, as both were masked; a masked place differs only if it is told to."""
    if isinstance(before, dict) and isinstance(after, dict):
        for name in sorted({*before, *after}):
            yield from differences(before.get(name), after.get(name), _below(path, name))
    elif before != after:
        yield path, before, after


def _below(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _wrong(path: str) -> Refused:
    return Refused(Reason.WRONG_TYPE, path=path or None)
