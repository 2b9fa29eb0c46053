"""Contracts held against their payloads and against what can be read safely, before the first value is seen."""

import dataclasses
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal, NewType

import pytest

from counterfoil import Reason, Refused
from counterfoil.schemas.definition import define
from tests.support.contracts import contract, definition, record

Sku = NewType("Sku", str)


def payload_of(**hints: Any) -> type[Any]:
    return dataclasses.make_dataclass("Payload", list(hints.items()), frozen=True)


def mistake(payload: type[Any], schema: dict[str, Any]) -> Refused:
    with pytest.raises(Refused) as refused:
        contract(payload, schema)
    assert refused.value.reason is Reason.CONTRACT_MISMATCH
    return refused.value


INNER = record("Inner", a="int")


@pytest.mark.parametrize(
    ("kind", "hint", "path"),
    [
        ("string", int, "x"),
        ("string", str | None, "x"),
        (["null", "string"], str, "x"),
        (["null", "string"], str | int | None, "x"),
        ("int", bool, "x"),
        ("double", Decimal, "x"),
        ("long", Any, "x"),
        ({"type": "array", "items": "int"}, set[int], "x"),
        ({"type": "array", "items": "int"}, list[str], "x[]"),
        ({"type": "array", "items": "int"}, tuple[int, int], "x"),
        ({"type": "map", "values": "int"}, dict[int, int], "x"),
        ({"type": "map", "values": "int"}, dict[str, str], "x{}"),
        (INNER, dict[str, int], "x"),
        (INNER, payload_of(a=str), "x.a"),
        (INNER, payload_of(a=int, b=int), "x.b"),
        (INNER, payload_of(), "x.a"),
        (["null", INNER], payload_of(a=str) | None, "x.a"),
        ({"type": "enum", "name": "E", "symbols": ["a", "b"]}, Literal["a"], "x"),
    ],
)
def test_an_annotation_that_is_not_the_contract_s_is_named_by_path(kind: Any, hint: Any, path: str) -> None:
    assert mistake(payload_of(x=hint), record(x=kind)).path == path


def test_a_field_that_only_one_side_has_is_named() -> None:
    assert mistake(payload_of(x=str, y=str), record(x="string")).path == "y"
    assert mistake(payload_of(x=str), record(x="string", y="string")).path == "y"


def test_a_field_with_a_plain_default_may_be_left_to_the_contract() -> None:
    """D56: absent is not null: it is not part of the content."""
    schema = record(x="string")
    schema["fields"] += [
        {"name": "y", "type": ["null", "string"], "default": None},
        {"name": "z", "type": "int", "default": 3},
        {"name": "w", "type": "double", "default": 1},
    ]
    payload, wider = payload_of(x=str), payload_of(x=str, y=str | None, z=int, w=float)
    codec, whole = contract(payload, schema), contract(wider, schema)
    assert codec.encode(payload("a")) == whole.encode(wider("a", None, 3, 1.0))
    assert codec.decode(codec.encode(payload("a"))) == payload("a")
    assert codec.canonical(payload("a")) != whole.canonical(wider("a", None, 3, 1.0))


def test_a_default_that_this_codec_cannot_write_is_refused_when_the_contract_is_read() -> None:
    """D41: a decimal's default is bytes in disguise."""
    decimal = {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}
    for kind, default in (
        (decimal, "\u0001"),
        ("int", 2**31),
        ("int", "3"),
        ("string", "a\0"),
        (["null", "int"], 3),
        ("bytes", ""),
    ):
        schema = record(x="string")
        schema["fields"].append({"name": "y", "type": kind, "default": default})
        assert mistake(payload_of(x=str), schema).path == "y"


@pytest.mark.parametrize(
    "kind",
    [
        "acme.Payload",
        "acme.Nowhere",
        {"type": "array", "items": "null"},
        {"type": "array", "items": record("Empty")},
        {"type": "fixed", "name": "F", "size": 0},
        {"type": "bytes", "logicalType": "decimal", "precision": 4},
        {"type": "bytes", "logicalType": "decimal", "precision": 2, "scale": 3},
        {"type": "fixed", "name": "F", "size": 1, "logicalType": "decimal", "precision": 4, "scale": 2},
        {"type": "long", "logicalType": "local-timestamp-micros"},
        {"type": "string", "logicalType": "decimal"},
        ["int", "long"],
        ["float", "double"],
        ["string", {"type": "enum", "name": "E", "symbols": ["a"]}],
        ["bytes", {"type": "fixed", "name": "F", "size": 2}],
        [record("A", x="int"), record("C", x="int")],
        [{"type": "map", "values": "int"}, record("A", x="int")],
        ["null", "null"],
        [],
        [["null"], "int"],
        {"type": "record", "name": "B", "fields": "x"},
        {"type": "array"},
        {"type": "enum", "name": "E", "symbols": [1]},
        {"type": "enum", "name": "E", "symbols": ["a", "a"]},
        {"type": "enum", "name": "E", "symbols": []},
        {"type": "enum", "name": 'E"\n', "symbols": ["a"]},
        5,
        None,
    ],
)
def test_a_contract_that_cannot_be_read_safely_or_exactly_is_refused(kind: Any) -> None:
    """D26, D40, D41: recursion, items of no width, ambiguous unions, decimals without a scale."""
    with pytest.raises(Refused) as refused:
        definition(record(x=kind))
    assert refused.value.reason is Reason.CONTRACT_MISMATCH


@pytest.mark.parametrize(
    "raw", [b"", b"{", b"[]", b'"string"', b'{"type":"record"}', b"\xff", b"[" * 100_000, b'{"type":"enum"}']
)
def test_a_file_that_is_no_contract_is_refused(raw: bytes) -> None:
    with pytest.raises(Refused) as refused:
        define(raw, "x.avsc")
    assert refused.value.reason is Reason.CONTRACT_MISMATCH


def test_nesting_has_a_limit() -> None:
    kind: Any = "int"
    for depth in range(40):
        kind = record(f"R{depth}", x=kind)
    with pytest.raises(Refused):
        definition(kind)


def test_spelling_docs_and_order_of_properties_change_no_contract() -> None:
    """D44, D49: full name or namespace, reference or short reference, docs; one hash, one subject: the record's full name."""
    inner = {"type": "record", "name": "acme.sub.Inner", "fields": [{"name": "x", "type": {"type": "int"}}]}
    one = {
        "type": "record",
        "name": "acme.sub.Outer",
        "fields": [{"name": "a", "type": inner}, {"name": "b", "type": "acme.sub.Inner"}],
    }
    short = {"doc": "words", "fields": [{"type": "int", "name": "x"}], "name": "Inner", "type": "record"}
    other = {
        "namespace": "acme.sub",
        "doc": "more words",
        "fields": [{"doc": "a", "type": short, "name": "a"}, {"name": "b", "type": "Inner"}],
        "name": "Outer",
        "type": "record",
    }
    first, second = definition(one), definition(other)
    assert (first.sha256, first.subject) == (second.sha256, "acme.sub.Outer")


def test_either_place_may_carry_the_inline_definition() -> None:
    """D44: the reader answers alike whichever field defines the type and whichever names it."""
    inner = payload_of(n=int)
    outer = payload_of(a=inner, b=inner)
    swapped = record(b=record("Inner", n="int"), a="acme.Inner")
    plain = record(a=record("Inner", n="int"), b="Inner")
    for schema in (plain, swapped):
        codec = contract(outer, schema)
        assert codec.decode(codec.encode(outer(a=inner(1), b=inner(2)))) == outer(a=inner(1), b=inner(2))


@pytest.mark.parametrize(("change", "value"), [("default", "b"), ("pii", "contact"), ("aliases", ["z"])])
def test_a_change_that_means_something_changes_the_hash(change: str, value: Any) -> None:
    """Avro's own parsing form drops these."""
    schema, changed = record(x="string"), record(x="string")
    changed["fields"][0][change] = value
    assert definition(schema).sha256 != definition(changed).sha256


def test_new_types_and_string_annotations_are_read_through() -> None:
    @dataclass(frozen=True)
    class Named:
        sku: "Sku"
        size: "Literal['s', 'm']"

    codec = contract(Named, record(sku="string", size={"type": "enum", "name": "Size", "symbols": ["s", "m"]}))
    assert codec.decode(codec.encode(Named(Sku("a"), "m"))) == Named(Sku("a"), "m")


def test_keyword_only_fields_and_other_orders_are_read_back() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Turned:
        b: str
        a: int

    codec = contract(Turned, record(a="int", b="string"))
    assert codec.decode(codec.encode(Turned(b="x", a=1))) == Turned(b="x", a=1)
