"""The codec against others that read and write Avro: fastavro with the whole contract, confluent-kafka's own deserializer."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from io import BytesIO
from typing import Any
from uuid import UUID

import fastavro
import orjson
import pytest
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer
from confluent_kafka.serialization import MessageField, SerializationContext
from hypothesis import given
from hypothesis import strategies as st

from tests.support.contracts import MICROS, contract, record


@dataclass(frozen=True)
class Part:
    sku: str
    weight: float | None


@dataclass(frozen=True)
class Everything:
    text: str
    small: int
    large: int
    flag: bool
    double: float
    raw: bytes
    fixed: bytes
    amount: Decimal
    id: UUID
    day: date
    at: datetime
    kind: str
    parts: tuple[Part, ...]
    counts: Mapping[str, int]
    choice: int | float | str | Part | None
    nothing: None


SCHEMA = record(
    "Everything",
    text="string",
    small="int",
    large="long",
    flag="boolean",
    double="double",
    raw="bytes",
    fixed={"type": "fixed", "name": "Four", "size": 4},
    amount={"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": 6},
    id={"type": "string", "logicalType": "uuid"},
    day={"type": "int", "logicalType": "date"},
    at=MICROS,
    kind={"type": "enum", "name": "Kind", "symbols": ["a", "b", "c"]},
    parts={"type": "array", "items": record("Part", sku="string", weight=["null", "double"])},
    counts={"type": "map", "values": "long"},
    choice=["null", "double", "long", "string", "acme.Part"],
    nothing="null",
)
CODEC = contract(Everything, SCHEMA)
PARSED = fastavro.parse_schema(orjson.loads(orjson.dumps(SCHEMA)))

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=30)
LONG = st.integers(-(2**63), 2**63 - 1)
DOUBLE = st.floats(allow_nan=False, allow_infinity=False)
PARTS = st.builds(Part, TEXT, st.none() | DOUBLE)
PAYLOADS = st.builds(
    Everything,
    text=TEXT,
    small=st.integers(-(2**31), 2**31 - 1),
    large=LONG,
    flag=st.booleans(),
    double=DOUBLE,
    raw=st.binary(max_size=200),
    fixed=st.binary(min_size=4, max_size=4),
    amount=st.integers(-(10**38) + 1, 10**38 - 1).map(
        lambda unscaled: Decimal((unscaled < 0, Decimal(abs(unscaled)).as_tuple().digits, -6))
    ),
    id=st.uuids(),
    day=st.dates(),
    at=st.datetimes(timezones=st.just(UTC)),
    kind=st.sampled_from("abc"),
    parts=st.lists(PARTS, max_size=4).map(tuple),
    counts=st.dictionaries(st.text("abcdé", max_size=6), LONG, max_size=4),
    choice=st.none() | LONG | DOUBLE | TEXT | PARTS,
    nothing=st.none(),
)


@given(PAYLOADS)
def test_what_is_written_is_read_back_equal_here_and_by_fastavro(payload: Everything) -> None:
    """D37, D38, D41: exact or nothing."""
    value = CODEC.encode(payload)
    back = CODEC.decode(value)
    assert back == payload
    assert type(back.choice) is type(payload.choice)
    rest = BytesIO(value[5:])
    assert fastavro.schemaless_reader(rest, PARSED, None) == asdict(payload) | {"parts": [asdict(part) for part in payload.parts]}
    assert not rest.read()


@given(PAYLOADS)
def test_what_fastavro_writes_is_read_here(payload: Everything) -> None:
    out = BytesIO()
    wire = asdict(payload) | {"parts": [asdict(part) for part in payload.parts]}
    match payload.choice:
        case float():
            wire["choice"] = ("double", payload.choice)
        case int():
            wire["choice"] = ("long", payload.choice)
        case str():
            wire["choice"] = ("string", payload.choice)
        case Part():
            wire["choice"] = ("acme.Part", asdict(payload.choice))
    fastavro.schemaless_writer(out, PARSED, wire, strict=True)
    assert CODEC.decode(CODEC.encode(payload)[:5] + out.getvalue()) == payload


@given(PAYLOADS)
def test_one_pass_gives_what_two_would(payload: Everything) -> None:
    assert CODEC.encode_both(payload) == (CODEC.encode(payload), CODEC.canonical(payload))


@given(PAYLOADS, PAYLOADS)
def test_two_payloads_share_a_canonical_form_only_when_they_share_content(one: Everything, other: Everything) -> None:
    """D56, S21"""
    if CODEC.encode(one) == CODEC.encode(other):
        assert CODEC.canonical(one) == CODEC.canonical(other)
    if CODEC.canonical(one) == CODEC.canonical(other):
        assert (one.small, one.amount, one.at, one.id) == (other.small, other.amount, other.at, other.id)


@pytest.mark.parametrize("choice", [None, 5, 2.5, "x", Part("sku", 1.5)])
def test_confluent_s_deserializer_reads_what_is_framed(choice: Any) -> None:
    """The frame and the ids are those of every client of a Confluent registry."""
    payload = Everything(
        *("text", 1, 2**40, True, 0.5, b"raw", b"four", Decimal("1.500000"), UUID(int=7), date(2024, 2, 29)),
        *(datetime(2024, 1, 1, tzinfo=UTC) + timedelta(microseconds=1), "b", (Part("p", None),), {"a": 1}, choice, None),
    )
    registry: Any = SchemaRegistryClient.new_client({"url": "mock://judge"})
    given_id = registry.register_schema("acme.Everything", Schema(orjson.dumps(SCHEMA).decode(), "AVRO"))
    value = b"\x00" + given_id.to_bytes(4, "big") + CODEC.encode(payload)[5:]
    read: Any = AvroDeserializer(registry)(value, SerializationContext("topic", MessageField.VALUE))
    assert read == asdict(payload) | {
        "parts": [{"sku": "p", "weight": None}],
        "choice": asdict(choice) if isinstance(choice, Part) else choice,
    }
