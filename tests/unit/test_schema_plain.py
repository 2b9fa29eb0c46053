"""Payloads as JSON values for people: back and forth without a loss, masked by the contract's tags, refused by path alone."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import Enum
from typing import Any
from uuid import UUID

import orjson
import pytest

from counterfoil.core.errors import Refused
from counterfoil.core.reasons import Reason
from counterfoil.schemas.definition import define
from counterfoil.schemas.fit import fitted
from counterfoil.schemas.plain import differences, from_plain, patched, tags, to_plain


class Colour(Enum):
    RED = "RED"
    BLUE = "BLUE"


@dataclass(frozen=True)
class Line:
    sku: str
    amount: Decimal


@dataclass(frozen=True)
class Order:
    id: UUID
    name: str
    lines: tuple[Line, ...]
    paid_at: datetime | None
    born: date
    colour: Colour
    stamps: dict[str, int]
    seal: bytes
    weight: float
    open: bool


SCHEMA = {
    "type": "record", "name": "acme.Order", "fields": [
        {"name": "id", "type": {"type": "string", "logicalType": "uuid"}},
        {"name": "name", "type": "string", "pii": "name"},
        {"name": "lines", "type": {"type": "array", "items": {"type": "record", "name": "Line", "fields": [
            {"name": "sku", "type": "string"},
            {"name": "amount", "pii": "money", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
        ]}}},
        {"name": "paid_at", "type": ["null", {"type": "long", "logicalType": "timestamp-millis"}], "default": None},
        {"name": "born", "type": {"type": "int", "logicalType": "date"}},
        {"name": "colour", "type": {"type": "enum", "name": "Colour", "symbols": ["RED", "BLUE"], "default": "RED"}},
        {"name": "stamps", "type": {"type": "map", "values": "long"}},
        {"name": "seal", "type": "bytes"},
        {"name": "weight", "type": "double"},
        {"name": "open", "type": "boolean"},
    ],
}  # fmt: skip
DEFINITION = define(orjson.dumps(SCHEMA), "order.avsc")
SHAPE = fitted(DEFINITION.shape, Order)
ORDER = Order(
    UUID(int=7), "Anna", (Line("a", Decimal("1.20")),), datetime(2026, 3, 1, tzinfo=UTC), date(2000, 1, 2), Colour.BLUE,
    {"x": 1}, b"\x00\xff", 1.5, True,
)  # fmt: skip


@pytest.mark.parametrize("order", [ORDER, replace(ORDER, paid_at=None, lines=(), stamps={})])
def test_a_payload_comes_back_equal_from_its_json(order: Order) -> None:
    plain = json.loads(json.dumps(to_plain(SHAPE, order, {})))
    assert from_plain(SHAPE, plain) == order


def test_what_the_contract_tags_is_masked_whole_and_by_its_class() -> None:
    """S18."""
    shown = to_plain(SHAPE, ORDER, tags(DEFINITION.text))
    assert shown["name"] == "[name]"
    assert shown["lines"] == [{"sku": "a", "amount": "[money]"}]
    assert shown["colour"] == "BLUE"


@pytest.mark.parametrize(
    ("path", "value", "reason"),
    [
        ("name", 7, Reason.WRONG_TYPE),
        ("open", 1, Reason.WRONG_TYPE),
        ("weight", True, Reason.WRONG_TYPE),
        ("colour", "GREEN", Reason.WRONG_TYPE),
        ("seal", "zz", Reason.WRONG_TYPE),
        ("born", "yesterday", Reason.WRONG_TYPE),
        ("id", "7", Reason.WRONG_TYPE),
        ("stamps", {"x": "1"}, Reason.WRONG_TYPE),
        ("lines", [{"sku": "a"}], Reason.MISSING_FIELD),
        ("lines", [{"sku": "a", "amount": 1.5}], Reason.WRONG_TYPE),
        ("lines", {}, Reason.WRONG_TYPE),
    ],
)
def test_a_value_of_another_kind_is_refused_by_its_path(path: str, value: Any, reason: Reason) -> None:
    plain = patched(to_plain(SHAPE, ORDER, {}), {path: value})
    with pytest.raises(Refused) as refused:
        from_plain(SHAPE, plain)
    assert refused.value.reason is reason
    assert (refused.value.path or "").startswith(path)


def test_a_name_that_the_contract_has_not_is_refused_and_not_repeated() -> None:
    """S18: somebody may have put a value where a name belongs."""
    with pytest.raises(Refused) as refused:
        from_plain(SHAPE, {**to_plain(SHAPE, ORDER, {}), "secret": 1})
    assert "secret" not in str(refused.value)


def test_a_patch_changes_what_it_names_and_null_is_a_value() -> None:
    plain = to_plain(SHAPE, ORDER, {})
    assert from_plain(SHAPE, patched(plain, {"paid_at": None, "stamps": {"y": 2}})) == replace(
        ORDER, paid_at=None, stamps={"x": 1, "y": 2}
    )


def test_differences_are_told_by_path() -> None:
    other = replace(ORDER, weight=2.0, lines=(Line("b", Decimal("1.20")),))
    before, after = (to_plain(SHAPE, one, {}) for one in (ORDER, other))
    assert {path for path, _, _ in differences(before, after)} == {"lines", "weight"}
