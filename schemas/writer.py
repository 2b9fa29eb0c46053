"""Compiles a fitted shape into one pass over a payload: every check, the canonical form, and the wire values for fastavro.

One closure a place, made once a contract. A refusal carries a reason and the field's path, never the value, and no closure
narrows, rounds or guesses: what is not exactly the contract's is refused. Paths name map entries by their place, since a key is
the user's data.
"""

from collections.abc import Callable
from operator import attrgetter
from typing import Any
from unicodedata import normalize

from counterfoil.core import canonical
from counterfoil.core.reasons import Reason
from counterfoil.schemas import scalars
from counterfoil.schemas.fit import constant
from counterfoil.schemas.scalars import Fault, Left, Put, Write
from counterfoil.schemas.shape import Shape, item_cost

MOST_COST = 100_000  #: of all items of arrays and maps in one value together, by `shape.cost`


def compile_writer(shape: Shape) -> Write:
    """A function of (payload, append, [cost left, bytes left]) that appends canonical bytes and returns the wire value."""
    match shape.kind:
        case "record":
            return _record(shape)
        case "union":
            return _union(shape)
        case "array":
            return _array(shape)
        case "map":
            return _map(shape)
    return scalars.compile_scalar(shape)


def _record(shape: Shape) -> Write:
    own = sorted((each for each in shape.fields if each.own), key=lambda each: each.name)
    left_out = {each.name: constant(each) for each in shape.fields if not each.own}
    places = [(each.name, canonical.of_text(each.name), compile_writer(each.shape)) for each in own]
    head, payload = canonical.record_head(len(own)), shape.python
    get = _getter([each.name for each in own])

    def write(value: Any, put: Put, left: Left) -> Any:
        if type(value) is not payload:
            raise Fault(Reason.WRONG_TYPE)
        put(head)
        wire = dict(left_out)
        name = ""
        try:
            for (name, lead, place), given in zip(places, get(value), strict=True):
                put(lead)
                wire[name] = place(given, put, left)
        except Fault as fault:
            raise fault.below(name) from None
        except AttributeError:
            missing = next((each for each, _, _ in places if not hasattr(value, each)), name)
        else:
            return wire
        raise Fault(Reason.MISSING_FIELD).below(missing)

    return write


def _getter(names: list[str]) -> Callable[[Any], tuple[Any, ...]]:
    if len(names) > 1:
        return attrgetter(*names)
    return lambda value: tuple(getattr(value, name) for name in names)


def _union(shape: Shape) -> Write:
    branches: list[tuple[tuple[type, ...], str, Write]] = []
    exact: dict[type, tuple[str, Write]] = {}
    for each in shape.items:
        writer = compile_writer(each)
        kinds = (list, tuple) if each.kind == "array" else (each.python,)
        branches.append((kinds, each.branch, writer))
        exact.update((kind, (each.branch, writer)) for kind in kinds)
    if float in exact:
        exact.setdefault(int, exact[float])
    exact.setdefault(bool, ("", _refuse))

    def write(value: Any, put: Put, left: Left) -> Any:
        if (found := exact.get(type(value))) is None:
            # Subclasses: a StrEnum in a text, a driver's own datetime.
            found = next(((name, writer) for kinds, name, writer in branches if isinstance(value, kinds)), None)
            if found is None:
                raise Fault(Reason.WRONG_TYPE)
        return found[0], found[1](value, put, left)

    return write


def _refuse(value: Any, put: Put, left: Left) -> Any:
    raise Fault(Reason.WRONG_TYPE)


def _array(shape: Shape) -> Write:
    item, cost = compile_writer(shape.items[0]), item_cost(shape)

    def write(value: Any, put: Put, left: Left) -> Any:
        if not isinstance(value, list | tuple):
            raise Fault(Reason.WRONG_TYPE)
        _count(value, left, cost)
        put(canonical.array_head(len(value)))
        wire: list[Any] = []
        try:
            for each in value:
                wire.append(item(each, put, left))
        except Fault as fault:
            raise fault.below(f"[{len(wire)}]") from None
        return wire

    return write


def _map(shape: Shape) -> Write:
    item, cost = compile_writer(shape.items[0]), item_cost(shape)

    def write(value: Any, put: Put, left: Left) -> Any:
        if not isinstance(value, dict):
            raise Fault(Reason.WRONG_TYPE)
        _count(value, left, cost)
        wire: dict[str, Any] = {}
        entries: list[tuple[bytes, list[bytes]]] = []
        spellings = set()
        try:
            for name, each in value.items():
                pieces: list[bytes] = []
                plain = scalars.write_text(name, pieces.append, left)
                spellings.add(normalize("NFC", plain))
                wire[plain] = item(each, pieces.append, left)
                entries.append((pieces[0], pieces))
        except Fault as fault:
            raise fault.below(f"{{{len(wire)}}}") from None
        if len(spellings) != len(wire):
            raise Fault(Reason.PAYLOAD_INVALID)  # two keys that are one text in NFC
        put(canonical.map_head(len(entries)))
        for _, pieces in sorted(entries, key=lambda entry: entry[0]):
            for piece in pieces:
                put(piece)
        return wire

    return write


def _count(value: Any, left: Left, cost: int) -> None:
    left[0] -= len(value) * cost
    if left[0] < 0:
        raise Fault(Reason.PAYLOAD_TOO_LARGE)
