"""Holds the annotations of a type's functions against its payload and its shape, for those who use no type checker.

Reads annotations only and calls nothing. What is not annotated, or cannot be resolved, is no mistake here: it is refused at
enqueue, or unknown at the probe.
"""

import functools
import inspect
import types
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from dataclasses import is_dataclass
from typing import Any, NamedTuple, TypeVar, Union, get_args, get_origin, get_type_hints
from uuid import UUID

from counterfoil.core.effect import Effect, InLedger, InLedgerBatch
from counterfoil.core.operation_type import OperationType
from counterfoil.core.proof import ProbeBatch, Proof
from counterfoil.core.records import Absent, Expected, Found, Item, Receipt, Several, Target, Unknown

__all__ = ["Misfit", "misfits", "shape_of"]

UNKNOWN = object()  # no annotation, or one that names what is not there at run time
NOTHING = type(None)


class Misfit(NamedTuple):
    """One function whose annotations do not fit: what is wrong, and what to do."""

    rule: str
    remedy: str


class _Role(NamedTuple):
    """A function of a type: which argument holds the payload, in what, and what it returns."""

    field: str
    call: Callable[..., Any]
    position: int
    holder: type | None
    returns: tuple[type, ...]


def misfits(of: OperationType[Any]) -> Iterator[Misfit]:
    """Every mistake that the annotations of one type show, in the order of its fields."""
    for role in _roles(of):
        takes = _taken(role.call, role.position)
        if not _takes(takes, of.payload, role.holder):
            wanted = f"{role.holder.__name__}[{of.payload.__name__}]" if role.holder else of.payload.__name__
            yield Misfit(f"{role.field} takes another payload", f"annotate its argument {wanted}, or declare the right function")
        for kind in _members(_returned(role.call)):
            if not _is_one_of(kind, role.returns):
                wanted = " or ".join(each.__name__ for each in role.returns).replace("NoneType", "None")
                yield Misfit(f"{role.field} returns {_name(kind)}", f"return {wanted}")
    if isinstance(of.proof, Proof):
        yield from _shape_misfits(of.proof)


def shape_of(proof: Proof[Any, Any]) -> type | None:
    """The shape that `expected`, or else the probe, is annotated to fill; None where nobody says."""
    shape = _argument(_returned(proof.expected), Expected)
    if shape is UNKNOWN and not isinstance(proof.probe, ProbeBatch):
        shape = _argument(_returned(proof.probe), Found)
    return shape if isinstance(shape, type) and is_dataclass(shape) else None


def _roles(of: OperationType[Any]) -> Iterator[_Role]:
    for field in ("identity", "entity"):
        if (call := getattr(of.order, field, None)) is not None:
            yield _Role(field, call, 0, None, (str, int, UUID, tuple))
    if (version := getattr(of.order, "version", None)) is not None:
        yield _Role("version", version, 0, None, (int,))
    match of.effect:
        case Effect(call):
            yield _Role("effect", call, 0, None, (Receipt,))
        case InLedger(call):
            yield _Role("effect", call, 1, None, (Receipt, NOTHING))
        case InLedgerBatch(call):
            yield _Role("effect", call, 1, Item, (NOTHING,))
    if isinstance(of.proof, Proof):
        yield _Role("expected", of.proof.expected, 0, None, (Expected,))
        if isinstance(of.proof.probe, ProbeBatch):
            yield _Role("probe", of.proof.probe.call, 0, Target, (Mapping,))
        else:
            yield _Role("probe", of.proof.probe, 0, Target, (Found, Several, Absent, Unknown))
        if of.proof.business_key is not None:
            yield _Role("business_key", of.proof.business_key, 0, None, (str,))
    if of.policy.compensate is not None:
        yield _Role("compensate", of.policy.compensate, 0, None, (object,))


def _shape_misfits(proof: Proof[Any, Any]) -> Iterator[Misfit]:
    shape = _argument(_returned(proof.expected), Expected)
    if not isinstance(shape, type):
        return
    if not is_dataclass(shape) or not getattr(shape, "__dataclass_params__").frozen:  # noqa: B009 - not in the type stubs
        yield Misfit("the shape is no frozen dataclass", f"write @dataclass(frozen=True) on {shape.__name__}")
        return
    for path in _floats(shape, (shape,)):
        yield Misfit(f"float in the shape, at {path}", "annotate it Decimal: two floats of one amount may differ")
    seen = UNKNOWN if isinstance(proof.probe, ProbeBatch) else _argument(_returned(proof.probe), Found)
    if isinstance(seen, type) and seen is not shape:
        yield Misfit("expected and probe fill different shapes", f"let the probe fill {shape.__name__}")


def _floats(shape: type, inside: tuple[type, ...]) -> Iterator[str]:
    for name, annotation in getattr(shape, "__annotations__", {}).items():
        for kind in _parts(_resolved(shape, annotation)):
            if kind is float:
                yield name
            elif is_dataclass(kind) and isinstance(kind, type) and kind not in inside:
                yield from (f"{name}.{below}" for below in _floats(kind, (*inside, kind)))


def _parts(annotation: Any) -> Iterator[Any]:
    """The annotation with everything inside its brackets."""
    yield annotation
    for inner in get_args(annotation):
        yield from _parts(inner)


# -- reading one annotation


def _function(call: Any) -> Any:
    """The plain function that holds the annotations: of a partial, a method or an object that can be called."""
    while isinstance(call, functools.partial):
        call = call.func
    return inspect.unwrap(call if inspect.isroutine(call) else getattr(type(call), "__call__", call))  # noqa: B004


def _resolved(owner: Any, annotation: Any) -> Any:
    """One annotation alone: a name that exists for type checkers only must not hide the others."""
    holder = types.SimpleNamespace(__annotations__={"it": annotation})
    names = getattr(owner, "__globals__", None) or vars(inspect.getmodule(owner) or types)
    try:
        return get_type_hints(holder, globalns=names)["it"]
    except (NameError, TypeError, SyntaxError, AttributeError):
        return UNKNOWN


def _taken(call: Callable[..., Any], position: int) -> Any:
    try:
        parameters = list(inspect.signature(call).parameters.values())
    except (TypeError, ValueError):
        return UNKNOWN
    if position >= len(parameters) or parameters[position].annotation is inspect.Parameter.empty:
        return UNKNOWN
    return _resolved(_function(call), parameters[position].annotation)


def _returned(call: Callable[..., Any]) -> Any:
    annotation = getattr(_function(call), "__annotations__", {}).get("return", UNKNOWN)
    return annotation if annotation is UNKNOWN else _resolved(_function(call), annotation)


def _takes(annotation: Any, payload: type, holder: type | None) -> bool:
    """Whether an argument of this annotation can hold the payload; what is not known can."""
    if annotation is UNKNOWN or annotation is Any or isinstance(annotation, TypeVar):
        return True
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin in (Union, types.UnionType):
        return any(_takes(one, payload, holder) for one in inner)
    if holder is None or annotation is object:
        return _is_subclass(payload, origin or annotation)
    if origin is holder:
        return _takes(inner[0], payload, None)
    if isinstance(origin, type) and issubclass(origin, Sequence) and inner:
        return _takes(inner[0], payload, holder)
    return annotation is holder


def _members(annotation: Any) -> Iterator[Any]:
    """What a function may return, one class at a time; nothing where it is not known."""
    origin = get_origin(annotation)
    if origin in (Union, types.UnionType):
        for one in get_args(annotation):
            yield from _members(one)
    elif origin in (Awaitable, Coroutine):
        yield from _members(get_args(annotation)[-1])
    elif isinstance(origin or annotation, type) and annotation is not Any:
        yield origin or annotation


def _argument(annotation: Any, holder: type) -> Any:
    """The S of `Expected[S]`, also inside a union or an awaitable."""
    if get_origin(annotation) is holder:
        return get_args(annotation)[0]
    return next((found for one in get_args(annotation) if (found := _argument(one, holder)) is not UNKNOWN), UNKNOWN)


def _is_one_of(kind: Any, wanted: tuple[type, ...]) -> bool:
    return kind is object or any(_is_subclass(kind, one) for one in wanted)


def _is_subclass(kind: Any, wanted: Any) -> bool:
    try:
        return not isinstance(wanted, type) or issubclass(kind, wanted)
    except TypeError:  # a protocol with data members: only a type checker can tell
        return True


def _name(kind: Any) -> str:
    return "nothing" if kind is NOTHING else str(getattr(kind, "__name__", kind))
