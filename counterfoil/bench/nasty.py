"""Values that are made to hurt their decoder: each is refused, or is the largest of its kind that is not. It decodes nothing.

A few bytes claim a billion items, every item fits its budget and the last byte is wrong, texts and numbers have the size of the
whole record. Contracts bound depth and width themselves: those that do not are never compiled.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from enum import Enum
from typing import Any, NamedTuple
from uuid import UUID

import orjson

from counterfoil.schemas.contract import MAX_BYTES, Contract
from counterfoil.schemas.definition import define
from counterfoil.schemas.lock import RegistryLock
from counterfoil.schemas.shape import COST, item_cost
from counterfoil.schemas.writer import MOST_COST

DEEP = 14  #: arrays inside each other, of the 32 levels that a contract may have


class Size(Enum):
    S = "S"
    L = "L"


@dataclass(frozen=True)
class Line:
    sku: str
    count: int
    price: Decimal
    id: UUID
    at: datetime
    size: Size


@dataclass(frozen=True)
class Order:
    lines: tuple[Line, ...]


@dataclass(frozen=True)
class Pair:
    a: int
    b: int | None


@dataclass(frozen=True)
class Pairs:
    pairs: tuple[Pair, ...]


@dataclass(frozen=True)
class Flags:
    flags: tuple[bool, ...]


@dataclass(frozen=True)
class Numbers:
    numbers: tuple[int, ...]


@dataclass(frozen=True)
class Choices:
    choices: tuple[int | str | None, ...]


@dataclass(frozen=True)
class Tags:
    tags: dict[str, str]


@dataclass(frozen=True)
class Words:
    word: str
    amount: Decimal
    blob: bytes
    id: UUID


DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": 9}
LINE = {
    "type": "record",
    "name": "Line",
    "fields": [
        {"name": "sku", "type": "string"},
        {"name": "count", "type": "long"},
        {"name": "price", "type": DECIMAL},
        {"name": "id", "type": {"type": "string", "logicalType": "uuid"}},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {"name": "size", "type": {"type": "enum", "name": "Size", "symbols": ["S", "L"]}},
    ],
}
PAIR = {"type": "record", "name": "Pair", "fields": [{"name": "a", "type": "int"}, {"name": "b", "type": ["null", "int"]}]}


class Codec(NamedTuple):
    """A contract, and what one item of its first field costs."""

    contract: Contract[Any]
    cost: int

    def framed(self, value: bytes) -> bytes:
        return b"\x00" + self.contract.schema_id.to_bytes(4, "big") + value


class Nasty(NamedTuple):
    """One value and the codec that it is meant for. `fits`: it is no poison, only the largest of its kind."""

    name: str
    contract: Contract[Any]
    value: bytes
    fits: bool = False


def _codec(payload: type[Any], **fields: Any) -> Codec:
    schema = {"type": "record", "name": payload.__name__, "fields": [{"name": n, "type": kind} for n, kind in fields.items()]}
    made = define(orjson.dumps(schema), "nasty.avsc")
    first = made.shape.fields[0].shape
    return Codec(Contract(payload, made, RegistryLock().with_local(made)), item_cost(first) if first.items else 1)


def _array(items: Any) -> dict[str, Any]:
    return {"type": "array", "items": items}


def long(number: int) -> bytes:
    """A zigzag number."""
    rest, out = (number << 1) ^ (number >> 63), bytearray()
    while rest > 127:
        out.append(rest & 127 | 128)
        rest >>= 7
    return bytes([*out, rest])


def _text(text: bytes) -> bytes:
    return long(len(text)) + text


def corpus() -> Iterator[Nasty]:
    """The values, in an order that says what they are."""
    flags = _codec(Flags, flags=_array("boolean"))
    words = _codec(Words, word="string", amount=DECIMAL, blob="bytes", id={"type": "string", "logicalType": "uuid"})
    yield from _claims(flags)
    yield Nasty("a text of 2^62 bytes", words.contract, words.framed(long(2**62) + b"x" * 1000))
    uuid = _text(b"0" * 8 + b"-0000-0000-0000-" + b"0" * 12)
    line = _text(b"sku") + long(2**60) + _text(b"\x0f" * 16) + uuid + long(1_700_000_000_000_000) + long(1)
    yield from _many("orders", _codec(Order, lines=_array(LINE)), line)
    yield from _many("pairs", _codec(Pairs, pairs=_array(PAIR)), long(2**30) + long(1) + long(2**30))
    yield from _many("flags", flags, b"\x01")
    yield from _many("numbers", _codec(Numbers, numbers=_array("long")), long(2**62))
    yield from _many("choices", _codec(Choices, choices=_array(["null", "long", "string"])), long(1) + long(-(2**62)))
    inside, kind = tuple[int, ...], _array("long")
    for _ in range(DEEP):
        inside, kind = tuple[inside, ...], _array(kind)  # type: ignore[valid-type]
    deep = _codec(dataclass(frozen=True)(type("Deep", (), {"__annotations__": {"deep": inside}})), deep=kind)
    yield from _many("arrays in arrays", deep, long(1) * DEEP + long(2**62) + long(0) * DEEP, deep.cost * DEEP + COST["long"])
    yield from _entries(_codec(Tags, tags={"type": "map", "values": "string"}))
    yield from _long(words)


def _claims(flags: Codec) -> Iterator[Nasty]:
    claims = {
        "a billion items in 5 bytes": long(10**9),
        "2^63 items": long(2**63 - 1),
        "-2^63 items": long(-(2**63)) + long(8),
        "a block longer than the value": long(-4) + long(2**40) + b"\x01" * 4,
        "a number without an end": b"\xff" * (MAX_BYTES - 5),
        "more than a record may have": b"[" * 20_000_000,
    }
    for name, value in claims.items():
        yield Nasty(name, flags.contract, flags.framed(value))


def _many(name: str, codec: Codec, item: bytes, cost: int = 0) -> Iterator[Nasty]:
    """As many items as are read, and a little more, in one block and in many."""
    room = MAX_BYTES - 20
    most = min(MOST_COST // (cost or codec.cost), room // len(item))
    end = long(0)
    values = {
        f"{name}, as many as are read": (long(most) + item * most + end, True),
        f"{name}, and a byte too many": (long(most) + item * most + end + end, False),
        f"{name}, cut off at the last": (long(most) + item * most, False),
        f"{name}, the whole record full": (long(room // len(item)) + item * (room // len(item)) + end, False),
        f"{name}, a block for each": ((long(1) + item) * min(most, room // (len(item) + 1)) + b"\x7f", False),
    }
    for said, (value, fits) in values.items():
        yield Nasty(said, codec.contract, codec.framed(value), fits or (most == room // len(item) and "whole" in said))


def _entries(tags: Codec) -> Iterator[Nasty]:
    most = MOST_COST // tags.cost
    entries = [_text(b"%06d" % number) + _text(b"") for number in range(most)]
    full, twice = b"".join(entries), b"".join([*entries[:-1], entries[0]])
    yield Nasty("entries of a map, as many as are read", tags.contract, tags.framed(long(most) + full + long(0)), fits=True)
    yield Nasty("entries of a map, the last key again", tags.contract, tags.framed(long(most) + twice + long(0)))


def _long(words: Codec) -> Iterator[Nasty]:
    """Texts, numbers and bytes that fill the record alone."""
    size = MAX_BYTES - 200
    uuid = _text(b"0" * 8 + b"-0000-0000-0000-" + b"0" * 12)
    good = {"word": _text(b"w"), "amount": _text(b"\x01"), "blob": _text(b"b"), "id": uuid}
    huge = {
        "a text of one record": ("word", _text(b"w" * size), True),
        "a text of letters of 4 bytes": ("word", _text("\U0001f600".encode() * (size // 4)), True),
        "a text that ends in half a letter": ("word", _text(b"w" * size + b"\xf0\x9f"), False),
        "a text with U+0000 at its end": ("word", _text(b"w" * size + b"\x00"), False),
        "a decimal of one record": ("amount", _text(b"\x7f" * size), False),
        "a decimal of zeros": ("amount", _text(b"\x00" * size), True),
        "bytes of one record": ("blob", _text(b"\xff" * size), True),
        "a UUID of one record": ("id", _text(b"0" * size), False),
        "a UUID of braces": ("id", _text(b"{" * size), False),
    }
    for name, (field, value, fits) in huge.items():
        yield Nasty(name, words.contract, words.framed(b"".join((good | {field: value}).values())), fits)
