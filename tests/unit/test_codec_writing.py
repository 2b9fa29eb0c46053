"""What a payload may hold, and what is refused at the door with the field's path and never its value."""

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from enum import StrEnum
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest

from counterfoil import Reason, Refused
from tests.support.contracts import DECIMAL_4_2, MICROS, MILLIS, contract, record


@dataclass(frozen=True)
class Line:
    sku: str
    price: Decimal


@dataclass(frozen=True)
class Order:
    id: str
    lines: tuple[Line, ...]
    tags: Mapping[str, int]
    note: str | None


ORDER = record(
    "Order",
    id="string",
    lines={"type": "array", "items": record("Line", sku="string", price=DECIMAL_4_2)},
    tags={"type": "map", "values": "int"},
    note=["null", "string"],
)


def one(kind: Any, hint: Any) -> tuple[type[Any], Any]:
    """A payload class with one field `x`, and its codec."""
    payload = dataclasses.make_dataclass("Payload", [("x", hint)], frozen=True)
    return payload, contract(payload, record(x=kind))


def refusal(kind: Any, hint: Any, value: Any) -> Refused:
    payload, codec = one(kind, hint)
    with pytest.raises(Refused) as refused:
        codec.encode(payload(value))
    assert refused.value.__context__ is None
    return refused.value


@pytest.mark.parametrize(
    ("kind", "hint", "value", "reason"),
    [
        ("int", int, 2**31, Reason.NUMBER_OUT_OF_RANGE),
        ("int", int, -(2**31) - 1, Reason.NUMBER_OUT_OF_RANGE),
        ("int", int, True, Reason.WRONG_TYPE),
        ("int", int, 1.9, Reason.WRONG_TYPE),
        ("int", int, "5", Reason.WRONG_TYPE),
        ("long", int, 2**63, Reason.NUMBER_OUT_OF_RANGE),
        ("double", float, 2**53 + 1, Reason.NUMBER_OUT_OF_RANGE),
        ("double", float, "1.0", Reason.WRONG_TYPE),
        ("double", float, True, Reason.WRONG_TYPE),
        ("double", float, Decimal(1), Reason.WRONG_TYPE),
        ("float", float, 0.1, Reason.NUMBER_OUT_OF_RANGE),
        ("float", float, 1e300, Reason.NUMBER_OUT_OF_RANGE),
        ("boolean", bool, 1, Reason.WRONG_TYPE),
        ("string", str, b"a", Reason.WRONG_TYPE),
        ("bytes", bytes, "a", Reason.WRONG_TYPE),
        ("bytes", bytes, bytearray(b"a"), Reason.WRONG_TYPE),
        ("null", None, 0, Reason.WRONG_TYPE),
        (["null", "int"], int | None, 2**31, Reason.NUMBER_OUT_OF_RANGE),
        (["null", "int"], int | None, True, Reason.WRONG_TYPE),
        (["null", "string"], str | None, 5, Reason.WRONG_TYPE),
    ],
)
def test_a_number_is_exact_or_refused(kind: Any, hint: Any, value: Any, reason: Reason) -> None:
    """D38: nothing is narrowed; the path is named, the value is not."""
    error = refusal(kind, hint, value)
    assert (error.reason, error.path) == (reason, "x")


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_nan_and_infinity_are_refused(value: float) -> None:
    """D53"""
    assert refusal("double", float, value).reason is Reason.NOT_A_NUMBER


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (Decimal("12345.67"), Reason.DECIMAL_SCALE),
        (Decimal("100"), Reason.DECIMAL_SCALE),
        (Decimal("1.234"), Reason.DECIMAL_SCALE),
        (Decimal("1E+999999"), Reason.DECIMAL_SCALE),
        (Decimal("1E-999999"), Reason.DECIMAL_SCALE),
        (Decimal("NaN"), Reason.NOT_A_NUMBER),
        (Decimal("sNaN"), Reason.NOT_A_NUMBER),
        (Decimal("Infinity"), Reason.NOT_A_NUMBER),
        (1.1, Reason.WRONG_TYPE),
        (1, Reason.WRONG_TYPE),
        ("1.10", Reason.WRONG_TYPE),
    ],
)
def test_a_decimal_beyond_scale_or_precision_is_refused(value: Any, reason: Reason) -> None:
    """D41: precision 4, scale 2."""
    assert refusal(DECIMAL_4_2, Decimal, value).reason is reason


@pytest.mark.parametrize("text", ["0", "-0", "1.1", "1.230", "99.99", "-99.99", "1E+1"])
def test_a_decimal_that_fits_comes_back_equal(text: str) -> None:
    """D41"""
    payload, codec = one(DECIMAL_4_2, Decimal)
    assert codec.decode(codec.encode(payload(Decimal(text)))) == payload(Decimal(text))


def test_38_digits_come_back_exact() -> None:
    """D41: also in a fixed, and whatever the caller's decimal context is."""
    digits = Decimal("-1234567890123456789012345678.9012345678")
    for kind in (
        {"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": 10},
        {"type": "fixed", "name": "D", "size": 16, "logicalType": "decimal", "precision": 38, "scale": 10},
    ):
        payload, codec = one(kind, Decimal)
        assert codec.decode(codec.encode(payload(digits))).x.as_tuple() == digits.as_tuple()


def test_one_amount_has_one_canonical_form() -> None:
    """D56: 1, 1.0 and 1.00 are one amount."""
    payload, codec = one(DECIMAL_4_2, Decimal)
    assert len({codec.canonical(payload(Decimal(text))) for text in ("1", "1.0", "1.00", "0.1E+1")}) == 1


@pytest.mark.parametrize("kind", [MICROS, MILLIS])
@pytest.mark.parametrize("fold", [0, 1])
def test_a_naive_datetime_is_refused_whatever_the_machine_s_zone(kind: Any, fold: int) -> None:
    """D37"""
    value = datetime(2024, 11, 3, 1, 30, fold=fold)  # noqa: DTZ001 - the mistake itself
    assert refusal(kind, datetime, value).reason is Reason.NAIVE_DATETIME


def test_the_two_readings_of_a_repeated_hour_are_two_instants() -> None:
    """D37: DST fold."""
    payload, codec = one(MICROS, datetime)
    zone = ZoneInfo("America/New_York")
    first, second = (payload(datetime(2024, 11, 3, 1, 30, fold=fold, tzinfo=zone)) for fold in (0, 1))
    assert codec.decode(codec.encode(second)).x - codec.decode(codec.encode(first)).x == timedelta(hours=1)


def test_the_zone_in_which_an_instant_is_written_changes_nothing() -> None:
    """D37, D56"""
    payload, codec = one(MICROS, datetime)
    here = datetime(2024, 1, 1, 12, 0, 0, 123456, tzinfo=UTC)
    there = here.astimezone(timezone(timedelta(hours=8)))
    assert codec.encode_both(payload(here)) == codec.encode_both(payload(there))
    assert codec.decode(codec.encode(payload(there))).x == here


def test_finer_than_milliseconds_is_refused_where_the_contract_says_milliseconds() -> None:
    """D37: the loss is explicit."""
    assert refusal(MILLIS, datetime, datetime(2024, 1, 1, 0, 0, 0, 1, tzinfo=UTC)).reason is Reason.NUMBER_OUT_OF_RANGE
    payload, codec = one(MILLIS, datetime)
    whole = datetime(2024, 1, 1, 0, 0, 0, 1000, tzinfo=UTC)
    assert codec.decode(codec.encode(payload(whole))).x == whole


def test_an_instant_that_no_reader_could_hold_is_refused() -> None:
    early = datetime.min.replace(tzinfo=timezone(timedelta(hours=1)))
    late = datetime.max.replace(tzinfo=timezone(-timedelta(hours=1)))
    assert refusal(MICROS, datetime, early).reason is Reason.NUMBER_OUT_OF_RANGE
    assert refusal(MICROS, datetime, late).reason is Reason.NUMBER_OUT_OF_RANGE


def test_a_datetime_is_no_date() -> None:
    kind = {"type": "int", "logicalType": "date"}
    assert refusal(kind, date, datetime(2024, 1, 1, tzinfo=UTC)).reason is Reason.WRONG_TYPE
    payload, codec = one(kind, date)
    for day in (date.min, date(1969, 12, 31), date(1970, 1, 1), date.max):
        assert codec.decode(codec.encode(payload(day))).x == day


@pytest.mark.parametrize("text", ["a\x00b", "\ud83d", "a\udc00"])
@pytest.mark.parametrize(("kind", "hint"), [("string", str), (["null", "string"], str | None)])
def test_text_that_some_part_would_refuse_is_refused_at_once(kind: Any, hint: Any, text: str) -> None:
    """D55"""
    assert refusal(kind, hint, text).reason is Reason.FORBIDDEN_TEXT


def test_map_keys_are_held_to_the_same_rule_and_not_printed() -> None:
    """D55, D52: the path has the entry's place."""
    kind = {"type": "map", "values": "int"}
    error = refusal(kind, dict[str, int], {"fine": 1, "4111\x00SECRET": 2})
    assert (error.reason, error.path) == (Reason.FORBIDDEN_TEXT, "x{1}")
    assert "SECRET" not in str(error)
    assert refusal(kind, dict[str, int], {1: 1}).reason is Reason.WRONG_TYPE
    assert refusal(kind, dict[str, int], {"caf\u00e9": 1, "cafe\u0301": 2}).reason is Reason.PAYLOAD_INVALID


def test_accents_stay_as_they_came_and_count_as_one_content() -> None:
    """D56: NFC is the canonical form's alone."""
    payload, codec = one("string", str)
    assert codec.decode(codec.encode(payload("cafe\u0301"))).x == "cafe\u0301"
    assert codec.canonical(payload("cafe\u0301")) == codec.canonical(payload("caf\u00e9"))


def test_null_and_empty_are_different_contents() -> None:
    """D56"""
    payload, codec = one(["null", "string"], str | None)
    assert codec.canonical(payload(None)) != codec.canonical(payload(""))


def test_the_order_of_fields_and_of_map_entries_changes_no_content() -> None:
    """D56: {b: 1, a: 2} and {a: 2, b: 1}."""
    first = dataclasses.make_dataclass("First", [("a", int), ("b", int)], frozen=True)
    second = dataclasses.make_dataclass("Second", [("b", int), ("a", int)], frozen=True)
    one_way, other_way = contract(first, record(a="int", b="int")), contract(second, record(b="int", a="int"))
    assert one_way.canonical(first(a=2, b=1)) == other_way.canonical(second(a=2, b=1))
    payload, codec = one({"type": "map", "values": "int"}, dict[str, int])
    assert codec.canonical(payload({"b": 1, "a": 2})) == codec.canonical(payload({"a": 2, "b": 1}))


def test_an_integer_stays_an_integer_in_a_union() -> None:
    """D40: [null, double, long] with 5; the branch is named to the writer."""
    payload, codec = one(["null", "double", "long"], float | int | None)
    for value in (5, 5.0, None, 2**53 + 1):
        back = codec.decode(codec.encode(payload(value))).x
        assert (back, type(back)) == (value, type(value))
    assert codec.canonical(payload(5)) != codec.canonical(payload(5.0))


def test_a_record_in_a_union_keeps_its_type_through_decode_and_encode() -> None:
    """D40"""
    inner = dataclasses.make_dataclass("A", [("x", int)], frozen=True)
    payload = dataclasses.make_dataclass("Payload", [("x", inner | str | None)], frozen=True)
    codec = contract(payload, record(x=["null", "string", record("A", x="long")]))
    value = codec.encode(payload(inner(3)))
    assert codec.encode(codec.decode(value)) == value
    assert type(codec.decode(value).x) is inner


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


COLOUR = {"type": "enum", "name": "Colour", "symbols": ["red", "blue"]}


def test_only_symbols_of_the_contract_are_taken() -> None:
    assert refusal(COLOUR, str, "green").reason is Reason.NOT_A_SYMBOL
    assert refusal(COLOUR, str, 1).reason is Reason.WRONG_TYPE
    assert refusal(COLOUR, Colour, "red").reason is Reason.WRONG_TYPE
    payload, codec = one(COLOUR, Colour)
    assert codec.decode(codec.encode(payload(Colour.BLUE))).x is Colour.BLUE
    texts, of_text = one(COLOUR, str)
    assert of_text.encode(texts(Colour.BLUE)) == of_text.encode(texts("blue"))


def test_a_fixed_has_its_length() -> None:
    kind = {"type": "fixed", "name": "F", "size": 3}
    assert refusal(kind, bytes, b"12").reason is Reason.PAYLOAD_INVALID
    payload, codec = one(kind, bytes)
    assert codec.decode(codec.encode(payload(b"123"))).x == b"123"


def test_a_uuid_is_written_as_text_or_as_sixteen_bytes() -> None:
    for kind in ({"type": "string", "logicalType": "uuid"}, {"type": "fixed", "name": "U", "size": 16, "logicalType": "uuid"}):
        payload, codec = one(kind, UUID)
        assert codec.decode(codec.encode(payload(UUID(int=5)))).x == UUID(int=5)
        assert refusal(kind, UUID, str(UUID(int=5))).reason is Reason.WRONG_TYPE


def test_the_path_leads_to_the_field_and_no_text_holds_its_value() -> None:
    """D52"""
    codec = contract(Order, ORDER)
    bad = Order("1", (Line("a", Decimal(1)), Line("4111-SECRET", Decimal("1.999"))), {}, None)
    with pytest.raises(Refused) as refused:
        codec.encode(bad)
    assert (refused.value.reason, refused.value.path) == (Reason.DECIMAL_SCALE, "lines[1].price")
    assert "1.999" not in str(refused.value)
    assert "SECRET" not in repr(refused.value) + repr(codec)


@pytest.mark.parametrize(
    ("value", "path", "reason"),
    [
        ({"id": "1", "lines": (), "tags": {}, "note": None}, None, Reason.WRONG_TYPE),
        (None, None, Reason.WRONG_TYPE),
        (Order("1", "ab", {}, None), "lines", Reason.WRONG_TYPE),  # type: ignore[arg-type]
        (Order("1", (None,), {}, None), "lines[0]", Reason.WRONG_TYPE),  # type: ignore[arg-type]
        (Order("1", (), [], None), "tags", Reason.WRONG_TYPE),  # type: ignore[arg-type]
        (object.__new__(Order), "id", Reason.MISSING_FIELD),
    ],
)
def test_another_payload_is_refused_for_users_without_a_type_checker(value: Any, path: str | None, reason: Reason) -> None:
    with pytest.raises(Refused) as refused:
        contract(Order, ORDER).encode(value)
    assert (refused.value.reason, refused.value.path) == (reason, path)


def test_a_payload_of_another_class_with_further_fields_is_refused() -> None:
    @dataclass(frozen=True)
    class Wider(Order):
        more: str = ""

    with pytest.raises(Refused) as refused:
        contract(Order, ORDER).encode(Wider("1", (), {}, None))
    assert refused.value.reason is Reason.WRONG_TYPE


def test_a_payload_too_large_for_a_record_is_refused_before_and_after_encoding() -> None:
    """D07: at the door, so that nothing waits behind it in the outbox."""
    codec = contract(Order, ORDER, max_bytes=1000)
    for bad in (
        Order("x" * 1001, (), {}, None),
        Order("x" * 600, (), {}, "y" * 600),
        Order("1", (), {f"k{n}": n for n in range(100_001)}, None),
        Order("1", (Line("x" * 900, Decimal(1)),) * 100_000, {}, None),
    ):
        with pytest.raises(Refused) as refused:
            codec.encode(bad)
        assert refused.value.reason is Reason.PAYLOAD_TOO_LARGE


def test_a_list_is_taken_for_a_tuple_and_read_back_as_declared() -> None:
    @dataclass(frozen=True)
    class Lists:
        a: list[int]
        b: Sequence[int]
        c: tuple[int, ...]

    ints = {"type": "array", "items": "int"}
    codec = contract(Lists, record(a=ints, b=ints, c=ints))
    assert codec.decode(codec.encode(Lists([1], [2], (3,)))) == Lists([1], (2,), (3,))


@dataclass(frozen=True)
class Instants:
    at: tuple[datetime, ...]
    named: dict[str, int | None]


INSTANTS = contract(
    Instants, record("Instants", at={"type": "array", "items": MICROS}, named={"type": "map", "values": ["null", "long"]})
)


@pytest.mark.parametrize(("at", "named"), [(12_500, 0), (0, 14_285), (6_250, 7_142)])
def test_what_the_writer_counts_as_the_largest_is_what_the_reader_still_reads(at: int, named: int) -> None:
    """D26, L1: items are counted by what they cost, on both sides alike; nothing is enqueued that no worker would read."""
    moment = datetime(2026, 1, 1, tzinfo=UTC)

    def payload(at: int, named: int) -> Instants:
        return Instants((moment,) * at, {str(number): number for number in range(named)})

    largest = payload(at, named)
    assert INSTANTS.decode(INSTANTS.encode(largest)) == largest
    for more in (payload(at + 1, named), payload(at, named + 1)):
        with pytest.raises(Refused) as refused:
            INSTANTS.encode(more)
        assert refused.value.reason is Reason.PAYLOAD_TOO_LARGE
