"""A contract as a tree: what each field is on the wire, and which Python type the payload gives it.

Refuses, when the contract is read, whatever could not be written or read exactly and within bounds: recursion, unions whose
branch a value cannot name, array items of no width, decimals without a fixed scale, logical types that this codec does not know.
"""

import re
from dataclasses import dataclass, field
from typing import Any

from counterfoil.core.errors import Refused
from counterfoil.core.reasons import Reason

PRIMITIVES = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})
DEEPEST = 32  #: records, arrays, maps and unions inside each other

#: What reading a value costs beside the cheapest one, which takes a third of a microsecond. The budget of a record is counted in
#: it, so that no bytes hold a reader up, whatever the contract; a number counts as long as it may be.
COST = {
    "int": 2,
    "long": 4,
    "date": 3,
    "record": 3,
    "array": 3,
    "map": 4,
    "decimal": 5,
    "uuid": 5,
    "timestamp-millis": 8,
    "timestamp-micros": 8,
}
KEY_COST = 2  #: of a map's entry, beside its value
BLOCK_COST = 2  #: of each block of an array or map after its first: our writer makes one

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_LOGICAL = {
    ("bytes", "decimal"),
    ("fixed", "decimal"),
    ("string", "uuid"),
    ("fixed", "uuid"),
    ("int", "date"),
    ("long", "timestamp-millis"),
    ("long", "timestamp-micros"),
}
#: Kinds whose values are told apart by their Python type; two of one family in a union are ambiguous.
FAMILY = {
    "int": "int",
    "long": "int",
    "float": "float",
    "double": "float",
    "string": "str",
    "enum": "str",
    "bytes": "bytes",
    "fixed": "bytes",
    "timestamp-millis": "datetime",
    "timestamp-micros": "datetime",
}


@dataclass(frozen=True, slots=True)
class Field:
    name: str
    shape: "Shape"
    has_default: bool = False
    default: Any = None
    own: bool = True  #: False: the payload has no such field, and the contract's default is written


@dataclass(frozen=True, slots=True)
class Shape:
    kind: str  #: the logical type where there is one, else the Avro type
    base: str  #: the Avro type on the wire
    name: str = ""  #: full name of a record, enum or fixed
    size: int = 0  #: bytes of a fixed
    precision: int = 0
    scale: int = 0
    symbols: tuple[str, ...] = ()
    fields: tuple[Field, ...] = ()  #: of a record, in the order of the contract
    items: tuple["Shape", ...] = ()  #: the one of an array or map, or the branches of a union
    python: Any = field(default=None, compare=False)  #: dataclass, Enum or container that the payload declares

    @property
    def family(self) -> str:
        return FAMILY.get(self.kind, self.kind)

    @property
    def branch(self) -> str:
        """The name by which the writer is told the branch of a union."""
        return self.name or self.base


def cost(shape: Shape) -> int:
    """What one value of the shape costs to read; items of arrays and maps inside it are counted where they come."""
    own = COST.get(shape.kind, 1)
    if shape.kind == "record":
        return own + sum(cost(each.shape) for each in shape.fields)
    return own + max(map(cost, shape.items)) if shape.kind == "union" else own


def item_cost(shape: Shape) -> int:
    """What one item of an array, or one entry of a map with its key, costs."""
    return cost(shape.items[0]) + (KEY_COST if shape.kind == "map" else 0)


def mismatch(path: str, subject: str) -> Refused:
    """The contract itself, or payload against contract; `path` is the field, `subject` says what is wrong with it."""
    return Refused(Reason.CONTRACT_MISMATCH, path=path or None, subject=subject)


def shape_of(schema: Any, path: str = "") -> Shape:
    """The tree of a normalised schema (see `definition`): full names, every named type defined where it is first used."""
    return _Builder().build(schema, path, 0)


class _Builder:
    def __init__(self) -> None:
        self.known: dict[str, Shape] = {}
        self.open: set[str] = set()

    def build(self, schema: Any, path: str, depth: int) -> Shape:
        if depth > DEEPEST:
            raise mismatch(path, f"nested deeper than {DEEPEST}")
        if isinstance(schema, list):
            return self._union(schema, path, depth)
        if isinstance(schema, str):
            return self._named_or_primitive(schema, path)
        kind = schema.get("type")
        logical = schema.get("logicalType")
        if logical is not None and (kind, logical) not in _LOGICAL:
            raise mismatch(path, f"logical type {logical} on {kind} is not supported")
        match kind:
            case "record":
                return self._record(schema, path, depth)
            case "enum":
                return self._enum(schema, path)
            case "fixed":
                return self._remember(self._fixed(schema, logical, path))
            case "array" | "map":
                item = self.build(schema["items" if kind == "array" else "values"], path + "[]", depth + 1)
                if kind == "array" and not _width(item):
                    raise mismatch(path, "array items of no width are refused: a few bytes could claim any number of them")
                return Shape(kind, kind, items=(item,))
        if kind not in PRIMITIVES:
            raise mismatch(path, "unknown type")
        if logical == "decimal":
            return self._decimal(schema, "bytes", path)
        return Shape(logical or kind, kind)

    def _named_or_primitive(self, name: str, path: str) -> Shape:
        if name in PRIMITIVES:
            return Shape(name, name)
        if name in self.open:
            raise mismatch(path, f"{name} is recursive")
        if name not in self.known:
            raise mismatch(path, f"{name} is not defined before it is used")
        return self.known[name]

    def _remember(self, shape: Shape) -> Shape:
        if not all(map(_NAME.fullmatch, shape.name.split("."))):
            raise mismatch("", "a name of the contract is not made of letters, digits and _")
        if shape.name in self.known or shape.name in self.open:
            raise mismatch("", f"{shape.name} is defined twice")
        self.known[shape.name] = shape
        return shape

    def _enum(self, schema: Any, path: str) -> Shape:
        symbols = schema["symbols"]
        if not symbols or len(set(symbols)) != len(symbols) or not all(map(_NAME.fullmatch, symbols)):
            raise mismatch(path, "an enum has symbols, each of letters, digits and _, and each once")
        return self._remember(Shape("enum", "enum", schema["name"], symbols=tuple(symbols)))

    def _record(self, schema: Any, path: str, depth: int) -> Shape:
        name = schema["name"]
        if name in self.open or name in self.known:
            raise mismatch(path, f"{name} is defined twice")
        self.open.add(name)
        fields = []
        for each in schema["fields"]:
            below = f"{path}.{each['name']}" if path else each["name"]
            fields.append(Field(each["name"], self.build(each["type"], below, depth + 1), "default" in each, each.get("default")))
        self.open.discard(name)
        if len({each.name for each in fields}) != len(fields) or not all(_NAME.fullmatch(each.name) for each in fields):
            raise mismatch(path, f"{name} has a field twice, or a field's name is not made of letters, digits and _")
        return self._remember(Shape("record", "record", name, fields=tuple(fields)))

    def _fixed(self, schema: Any, logical: str | None, path: str) -> Shape:
        size = schema["size"]
        if type(size) is not int or size < 1:
            raise mismatch(path, "a fixed needs at least one byte")
        if logical == "uuid" and size != 16:
            raise mismatch(path, "a uuid has 16 bytes")
        if logical == "decimal":
            return self._decimal(schema, "fixed", path)
        return Shape(logical or "fixed", "fixed", schema["name"], size=size)

    def _decimal(self, schema: Any, base: str, path: str) -> Shape:
        precision, scale, size = schema.get("precision"), schema.get("scale"), schema.get("size", 0)
        if type(precision) is not int or type(scale) is not int or not 0 <= scale <= precision or precision < 1:
            raise mismatch(path, "a decimal states its precision and its scale, 0 <= scale <= precision")
        if precision > 1000 or (size and 10**precision - 1 >= 1 << (8 * size - 1)):
            raise mismatch(path, "the decimal's precision does not fit")
        return Shape("decimal", base, schema.get("name", ""), size, precision, scale)

    def _union(self, schemas: list[Any], path: str, depth: int) -> Shape:
        branches = [self.build(each, path, depth + 1) for each in schemas]
        families = [each.family for each in branches]
        names = [each.branch for each in branches]
        if any(each.kind == "union" for each in branches) or not branches:
            raise mismatch(path, "a union inside a union, or an empty one")
        if len(set(families)) != len(families) or len(set(names)) != len(names) or {"map", "record"} <= set(families):
            raise mismatch(path, "a value could belong to two branches of this union")
        return Shape("union", "union", items=tuple(branches))


def _width(shape: Shape) -> int:
    """Fewest bytes of a value; only zero or not zero matters."""
    if shape.kind == "null":
        return 0
    return max((_width(each.shape) for each in shape.fields), default=0) if shape.kind == "record" else 1
