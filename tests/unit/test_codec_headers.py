"""Headers: the CloudEvents binding as written, and hostile headers answered with Undecodable only (D26, D55)."""

from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from counterfoil import Reason
from counterfoil.core.errors import Undecodable
from counterfoil.schemas import envelope
from counterfoil.schemas.envelope import Command, DeadLetter

ID = UUID("01234567-89ab-8def-8123-456789abcdef")
COMMAND = Command(7, ID, "sync_customer", 2, "cf1-0123456789ab8def8123456789abcdef-r2-g0", 99, None)
TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
SOURCE = envelope.source("main")
LETTER = DeadLetter(
    UUID(int=9), "undecodable_value", "pay", "counterfoil 0.1.0", "main.pay.commands", 3, 41, 1_700_000_000_000, ID, 2
)


def test_a_command_has_the_headers_of_the_cloudevents_binding() -> None:
    assert envelope.command_headers(SOURCE, COMMAND._replace(traceparent=TRACE)) == [
        ("ce_specversion", b"1.0"),
        ("ce_id", b"01234567-89ab-8def-8123-456789abcdef"),
        ("ce_source", b"/counterfoil/main"),
        ("ce_type", b"sync_customer.requested"),
        ("content-type", b"application/avro"),
        ("cf_number", b"7"),
        ("cf_revision", b"2"),
        ("cf_key", b"cf1-0123456789ab8def8123456789abcdef-r2-g0"),
        ("cf_event", b"99"),
        ("traceparent", TRACE.encode()),
    ]


def test_state_records_and_dead_letters_say_what_they_are() -> None:
    assert ("ce_type", b"pay.state") in envelope.state_headers(SOURCE, ID, "pay", 5)
    assert envelope.parse_state_id(envelope.state_headers(SOURCE, ID, "pay", 5, TRACE)) == ID
    headers = dict(envelope.dead_letter_headers(SOURCE, envelope.dead_letter_texts(LETTER), 5))
    assert headers["ce_type"] == b"pay.quarantined"
    assert headers["ce_id"] == str(ID).encode()
    without = envelope.dead_letter_headers(SOURCE, envelope.dead_letter_texts(LETTER._replace(operation_id=None)), 5)
    assert ("ce_id", str(LETTER.cause).encode()) in without


@pytest.mark.parametrize("trace", [None, TRACE])
def test_a_command_is_read_back(trace: str | None) -> None:
    command = COMMAND._replace(traceparent=trace)
    assert envelope.parse_command(envelope.command_headers(SOURCE, command)) == command


@pytest.mark.parametrize("letter", [LETTER, LETTER._replace(operation_id=None, attempt=None, timestamp=-1)])
def test_a_dead_letter_is_read_back(letter: DeadLetter) -> None:
    """S12: a closed list, one cause id each."""
    texts = [list(each) for each in envelope.dead_letter_texts(letter)]
    headers = envelope.dead_letter_headers(SOURCE, texts, 5)
    assert envelope.parse_dead_letter(headers) == letter
    assert {name for name, _ in headers} <= {
        *("ce_specversion", "ce_id", "ce_source", "ce_type", "cf_event", "cf_reason", "cf_cause", "cf_consumer", "cf_topic"),
        *("cf_partition", "cf_offset", "cf_timestamp", "cf_operation", "cf_attempt"),
    }


def test_of_the_original_headers_only_short_plain_allowed_ones_travel() -> None:
    """S18, D55: a token, a U+0000 or a megabyte stays in the ledger; nobody's header replaces one of ours."""
    original: Any = [
        ("authorization", b"Bearer SECRET"),
        ("cf_reason", b"forged"),
        ("traceparent", TRACE.encode()),
        ("traceparent", b"second"),
        ("tracestate", b"a\x00b"),
        ("content-type", b"x" * 1_000_000),
        ("tracestate", None),
    ]
    texts = envelope.dead_letter_texts(LETTER, original)
    assert [each for each in texts if each[0] in envelope.TRAVELLING] == [("traceparent", TRACE)]
    assert [text for name, text in texts if name == "cf_reason"] == ["undecodable_value"]
    assert envelope.dead_letter_texts(LETTER, None)


@pytest.mark.parametrize(
    ("name", "raw"),
    [
        ("cf_number", b""),
        ("cf_number", None),
        ("cf_number", b"-1"),
        ("cf_number", b"1_0"),
        ("cf_number", b" 1"),
        ("cf_number", "\u0661".encode()),
        ("cf_number", b"9" * 1_000_000),
        ("cf_number", b"9223372036854775808"),
        ("ce_id", b"x" * 36),
        ("ce_id", b"{01234567-89ab-8def-8123-456789abcde"),
        ("ce_id", b"0x234567-89ab-8def-8123-456789abcdef"),
        ("ce_id", b"\xff" * 36),
        ("ce_type", b"pay.state"),
        ("ce_type", b".requested"),
        ("ce_type", b"requested"),
        ("ce_type", b"p\x00y.requested"),
        ("ce_type", b"\xf0\x9f.requested"),
        ("cf_key", b"\x1b[31m"),
        ("cf_key", b"k" * 129),
        ("traceparent", b"a\nb"),
    ],
)
def test_an_odd_header_is_named_and_not_printed(name: str, raw: bytes | None) -> None:
    """D26, D52, D55"""
    headers = [(each, raw if each == name else value) for each, value in envelope.command_headers(SOURCE, COMMAND)]
    headers += [] if name in dict(headers) else [(name, raw)]
    with pytest.raises(Undecodable) as error:
        envelope.parse_command(headers)
    assert (error.value.reason, error.value.path) == (Reason.UNDECODABLE_FRAME, name)
    assert error.value.__context__ is None


def test_a_header_of_ours_that_comes_twice_is_refused_and_another_s_is_not() -> None:
    headers: list[tuple[str, bytes | None]] = [*envelope.command_headers(SOURCE, COMMAND)]
    assert envelope.parse_command([*headers, ("x", b"1"), ("x", None)]) == COMMAND
    with pytest.raises(Undecodable):
        envelope.parse_command([*headers, ("cf_number", b"8")])


RAW = st.none() | st.binary(max_size=40) | st.text(max_size=5)
NAMES = st.sampled_from(
    ["ce_id", "ce_type", "cf_number", "cf_revision", "cf_key", "cf_event", "traceparent", "cf_cause", "x", ""]
)


@given(st.none() | st.lists(st.tuples(NAMES | st.text(max_size=5), RAW), max_size=12) | st.lists(st.integers(), max_size=3))
def test_any_headers_are_read_or_undecodable(headers: Any) -> None:
    """D26"""
    reasons = set()
    for parse in (envelope.parse_command, envelope.parse_state_id, envelope.parse_dead_letter):
        try:
            parse(headers)
        except Undecodable as error:
            reasons.add(error.reason)
    assert reasons <= {Reason.UNDECODABLE_FRAME}
