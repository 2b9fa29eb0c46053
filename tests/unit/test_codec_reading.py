"""Bytes that anybody may have written: read whole and within bounds, or Undecodable with a reason and a path (D26)."""

import dataclasses
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from counterfoil import Reason
from counterfoil.core.errors import Undecodable
from tests.support.contracts import DECIMAL_4_2, MICROS, contract, record


@dataclass(frozen=True)
class Item:
    sku: str
    count: int


@dataclass(frozen=True)
class Cart:
    id: str
    items: tuple[Item, ...]
    notes: dict[str, str | None]
    ok: bool


CART = contract(
    Cart,
    record(
        "Cart",
        id="string",
        items={"type": "array", "items": record("Item", sku="string", count="long")},
        notes={"type": "map", "values": ["null", "string"]},
        ok="boolean",
    ),
)
GOOD = CART.encode(Cart("1", (Item("a", 1), Item("b", 2)), {"n": None, "m": "x"}, True))
FRAME = GOOD[:5]


def reason_of(value: Any, codec: Any = CART) -> tuple[Reason, str | None]:
    with pytest.raises(Undecodable) as error:
        codec.decode(value)
    assert error.value.__context__ is None
    return error.value.reason, error.value.path


def outcome(value: bytes) -> Reason | None:
    """None for a payload, else why it is none."""
    try:
        assert isinstance(CART.decode(value), Cart)
    except Undecodable as error:
        return error.reason
    return None


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (b"", Reason.UNDECODABLE_FRAME),
        (b"{not json", Reason.UNDECODABLE_FRAME),
        (b"\xff", Reason.UNDECODABLE_FRAME),
        (b"\x00\x00\x00\x00", Reason.UNDECODABLE_FRAME),
        (b"null", Reason.UNDECODABLE_FRAME),
        (b"[" * 20_000_000, Reason.VALUE_TOO_LARGE),
        (b"\x00\x00\x00\x00\x63" + GOOD[5:], Reason.UNKNOWN_SCHEMA_ID),
        (None, Reason.NULL_VALUE),
        (FRAME, Reason.UNDECODABLE_VALUE),
        (GOOD + b"\x00", Reason.UNDECODABLE_VALUE),
        (GOOD[:-1], Reason.UNDECODABLE_VALUE),
    ],
)
def test_a_record_that_is_no_value_is_undecodable_with_its_reason(value: bytes | None, reason: Reason) -> None:
    """D26"""
    assert reason_of(value)[0] is reason


def test_five_bytes_that_claim_a_billion_billion_items_are_refused_at_once() -> None:
    """D26: a count is held against the bytes that are left before anything is made."""
    claim = FRAME + b"\x00" + b"\xfe" * 9 + b"\x01"
    assert reason_of(claim) == (Reason.UNDECODABLE_VALUE, "items[0]")
    negative = FRAME + b"\x00" + b"\x01\x02"
    assert reason_of(negative)[0] is Reason.UNDECODABLE_VALUE


def test_more_items_than_any_payload_may_have_are_refused() -> None:
    flags = dataclasses.make_dataclass("Flags", [("x", tuple[bool, ...])], frozen=True)
    codec = contract(flags, record(x={"type": "array", "items": "boolean"}))
    full = codec.encode(flags((True,) * 100_000))
    assert len(codec.decode(full).x) == 100_000
    blocks = full[:5] + (b"\x80\xea\x30" + b"\x01" * 400_000) + b"\x00"
    assert reason_of(blocks, codec)[0] is Reason.UNDECODABLE_VALUE


@pytest.mark.parametrize(
    ("kind", "hint", "wire"),
    [
        ("int", int, b"\x80\x80\x80\x80\x10"),
        ("long", int, b"\xff" * 10 + b"\x01"),
        ("long", int, b"\xff" * 9 + b"\x03"),
        ("boolean", bool, b"\x02"),
        ("double", float, b"\x00" * 6 + b"\xf8\x7f"),
        ("string", str, b"\x01"),
        ("string", str, b"\x02\xff"),
        ("string", str, b"\x02\x00"),
        ("string", str, b"\xfe\xff\xff\xff\x0f"),
        ("bytes", bytes, b"\x03a"),
        (["null", "long"], int | None, b"\x01"),
        (["null", "long"], int | None, b"\x04"),
        (DECIMAL_4_2, Any, b"\x06\x01\x00\x00"),
        (MICROS, Any, b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
        ({"type": "int", "logicalType": "date"}, Any, b"\xfe\xff\xff\xff\x0f"),
        ({"type": "string", "logicalType": "uuid"}, Any, b"\x04ab"),
    ],
)
def test_wire_values_outside_their_type_are_refused_with_the_path(kind: Any, hint: Any, wire: bytes) -> None:
    """D26, D38: lengths below zero, indexes from the end, numbers past their range, text that is none."""
    from datetime import date, datetime
    from decimal import Decimal
    from uuid import UUID

    logical = kind.get("logicalType") if isinstance(kind, dict) else None
    by_logical = {"decimal": Decimal, "timestamp-micros": datetime, "date": date, "uuid": UUID}
    payload = dataclasses.make_dataclass("Payload", [("x", by_logical.get(logical or "", hint))], frozen=True)
    codec = contract(payload, record(x=kind))
    assert reason_of(FRAME + wire, codec) == (Reason.UNDECODABLE_VALUE, "x")


def test_a_symbol_that_this_reader_does_not_know_is_never_mapped_to_another() -> None:
    """D43: index 2 of two symbols, and -1, which Python would count from the end."""
    for kind, hint in (
        ({"type": "enum", "name": "S", "symbols": ["OPEN", "DONE"], "default": "OPEN"}, str),
        (["null", {"type": "enum", "name": "S", "symbols": ["OPEN", "DONE"]}], str | None),
    ):
        payload = dataclasses.make_dataclass("Payload", [("status", hint)], frozen=True)
        codec = contract(payload, record(status=kind))
        lead = b"\x02" if isinstance(kind, list) else b""
        for index in (b"\x04", b"\x01"):
            assert reason_of(FRAME + lead + index, codec) == (Reason.UNDECODABLE_VALUE, "status")


def test_an_exception_in_the_payload_s_own_check_says_nothing_of_the_value() -> None:
    """D52"""

    @dataclass(frozen=True)
    class Strict:
        x: str

        def __post_init__(self) -> None:
            if self.x.startswith("bad"):
                raise ValueError(self.x)

    codec = contract(Strict, record(x="string"))
    value = codec.encode(Strict("abc-SECRET")).replace(b"abc", b"bad")
    with pytest.raises(Undecodable) as error:
        codec.decode(value)
    assert "SECRET" not in str(error.value) + repr(error.value)
    assert error.value.__context__ is None


@given(st.binary(max_size=64))
@example(b"\x02" * 60)
def test_any_bytes_are_read_or_undecodable(tail: bytes) -> None:
    """D26: no other exception, whatever the bytes are."""
    assert outcome(FRAME + tail) in (None, Reason.UNDECODABLE_VALUE)


@given(st.integers(5, len(GOOD) - 1), st.integers(0, 255))
def test_a_changed_byte_gives_a_payload_or_undecodable(at: int, byte: int) -> None:
    """D26"""
    assert outcome(GOOD[:at] + bytes([byte]) + GOOD[at + 1 :]) in (None, Reason.UNDECODABLE_VALUE)
