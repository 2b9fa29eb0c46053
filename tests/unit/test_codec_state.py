"""State records: byte for byte what fastavro would write, and read within bounds (S16, D16, D26)."""

from datetime import UTC, datetime
from io import BytesIO
from typing import Any
from uuid import uuid4

import fastavro
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from counterfoil import Reason, State
from counterfoil.core.errors import Undecodable
from counterfoil.schemas.state_record import StateRecord
from counterfoil.schemas.system import state_definition
from tests.support.contracts import state_codec

CODEC = state_codec()
PARSED = fastavro.parse_schema(orjson.loads(state_definition().text))
INT = st.integers(0, 2**31 - 1)
TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=200)
RECORDS = st.builds(
    StateRecord,
    epoch=INT,
    sequence=INT,
    type=st.sampled_from(["pay", "sync_customer"]),
    entity=TEXT,
    version=st.none() | TEXT,
    state=st.sampled_from([state.value for state in State]),
    attempt=INT,
    revision=INT,
    remote_id=st.none() | TEXT,
    digest_secret=st.integers(0, 32_767),
    business_key_digest=st.none() | st.binary(max_size=80),
    expected_digest=st.none() | st.binary(max_size=80),
    reason=st.sampled_from([reason.value for reason in Reason]),
    at=st.datetimes(timezones=st.just(UTC)),
)
GOLDEN = StateRecord(
    1, 4, "pay", "452", "7", "confirmed", 1, 1, "crm-1", 1, b"b", None, "receipt", datetime(2026, 1, 2, tzinfo=UTC)
)


@given(RECORDS)
def test_every_byte_is_fastavro_s(record: StateRecord) -> None:
    """S16"""
    out = BytesIO()
    fastavro.schemaless_writer(out, PARSED, record._asdict(), strict=True)
    assert CODEC.encode(record)[5:] == out.getvalue()
    assert CODEC.decode(CODEC.encode(record)) == record


def test_the_bytes_of_a_record_never_change() -> None:
    assert (
        CODEC.encode(GOLDEN).hex()
        == "0000000001020806706179063435320202370c0202020a63726d2d3102020262000e726563656970748080bdbf8cd7a306"
    )


def test_the_contract_has_every_state_and_one_for_newer_ones() -> None:
    """D43: an older reader sees `unknown`, never a state that it is not."""
    assert CODEC.decode(CODEC.encode(GOLDEN)).state == State.CONFIRMED.value
    shape = next(each.shape for each in state_definition().shape.fields if each.name == "state")
    assert set(shape.symbols) == {"unknown", *(state.value for state in State)}
    with pytest.raises(KeyError):
        CODEC.encode(GOLDEN._replace(state="unknown"))
    unknown = CODEC.encode(GOLDEN).replace(b"\x0c\x02\x02\x02\ncrm", b"\x00\x02\x02\x02\ncrm")
    with pytest.raises(Undecodable):
        CODEC.decode(unknown)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (None, Reason.NULL_VALUE),
        (b"", Reason.UNDECODABLE_FRAME),
        (b"null", Reason.UNDECODABLE_FRAME),
        (b"{}", Reason.UNDECODABLE_FRAME),
        (b"\x00\x00\x00\x00\x63\x00", Reason.UNKNOWN_SCHEMA_ID),
        (b"\x00\x00\x00\x00\x01", Reason.UNDECODABLE_VALUE),
        (b"\x00" * 70_000, Reason.VALUE_TOO_LARGE),
    ],
)
def test_other_bytes_on_the_state_topic_are_told_apart(value: Any, reason: Reason) -> None:
    """D16, D26: a null value ends a key; it is not the text null."""
    with pytest.raises(Undecodable) as error:
        CODEC.decode(value)
    assert error.value.reason is reason
    assert str(uuid4()) not in str(error.value)


@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_undecodable(tail: bytes) -> None:
    """D26"""
    reason = None
    try:
        CODEC.decode(CODEC.encode(GOLDEN)[:5] + tail)
    except Undecodable as error:
        reason = error.reason
    assert reason in (None, Reason.UNDECODABLE_VALUE)
