"""An outbox row as the record that leaves it."""

from __future__ import annotations

from uuid import UUID

import pytest

from counterfoil.core.identity import idempotency_key
from counterfoil.core.reasons import Reason
from counterfoil.ledger.relaying import Waiting
from counterfoil.schemas.envelope import Command, command_headers, parse_command, parse_dead_letter, source, state_headers
from counterfoil.streams.relay.outgoing import Composer

ID = UUID("8c6d1f0e-0d1b-8f6e-9d3f-0123456789ab")
TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
COMPOSER = Composer("shop")


def row(
    kind: str, *, key: bytes | None = b"452", value: bytes | None = b"v", headers: str | None = None, trace: str | None = None
) -> Waiting:
    return (5, 77, kind, "send_mail", 9, str(ID), 2, 1, key, value, headers, trace, 600)


@pytest.mark.parametrize("kind", ["command", "retry"])
@pytest.mark.parametrize("trace", [None, TRACE])
def test_a_command_says_what_the_envelope_says_and_carries_the_same_key_on_every_road(kind: str, trace: str | None) -> None:
    """D05: whatever sends it again, event and idempotency key are the same."""
    made = COMPOSER.lane(kind, "send_mail").headers(row(kind, trace=trace))
    key = idempotency_key(ID, 2, 1)
    assert made == command_headers(source("shop"), Command(9, ID, "send_mail", 2, key, 77, trace))
    assert parse_command(made) == Command(9, ID, "send_mail", 2, key, 77, trace)


@pytest.mark.parametrize("trace", [None, TRACE])
@pytest.mark.parametrize("value", [None, b"", b"{}"])
def test_a_state_row_says_what_the_envelope_says_with_any_value_and_none(value: bytes | None, trace: str | None) -> None:
    """D16: a null value is a tombstone, and an empty one is a value."""
    made = COMPOSER.lane("state", "send_mail").headers(row("state", value=value, trace=trace))
    assert made == state_headers(source("shop"), ID, "send_mail", 77, trace)


@pytest.mark.parametrize("key", [None, b""])
@pytest.mark.parametrize("kind", ["state", "command", "retry"])
def test_a_row_without_a_key_is_refused_before_it_is_handed_over(kind: str, key: bytes | None) -> None:
    """D17."""
    assert COMPOSER.lane(kind, "send_mail").headers(row(kind, key=key)) is Reason.KEY_MISSING


def test_a_command_without_a_payload_is_refused_and_never_a_null_record() -> None:
    """D16."""
    assert COMPOSER.lane("command", "send_mail").headers(row("command", value=None)) is Reason.NULL_VALUE


def test_a_dead_letter_carries_the_row_s_own_headers() -> None:
    """D68: the record's first place is a field; the topic's partition is chosen by key."""
    words = (
        '[["cf_reason", "tries_used_up"], ["cf_cause", "8c6d1f0e-0d1b-8f6e-9d3f-0123456789ab"],'
        ' ["cf_consumer", "counterfoil/0.1"],'
        ' ["cf_topic", "shop.send_mail.commands"], ["cf_partition", "17"], ["cf_offset", "4"], ["cf_timestamp", "-1"],'
        ' ["cf_type", "send_mail"]]'
    )
    made = COMPOSER.lane("dead_letter", "send_mail").headers(row("dead_letter", headers=words))
    assert not isinstance(made, Reason)
    letter = parse_dead_letter(made)
    assert (letter.reason, letter.topic, letter.partition, letter.type) == (
        "tries_used_up",
        "shop.send_mail.commands",
        17,
        "send_mail",
    )


@pytest.mark.parametrize("words", ["{}", "[1]", '"x"', "[[1,2,3]]"])
def test_headers_that_are_no_pairs_are_refused_instead_of_ending_the_relay(words: str) -> None:
    made = COMPOSER.lane("dead_letter", "send_mail").headers(row("dead_letter", headers=words))
    assert made is Reason.UNDECODABLE_FRAME or isinstance(made, list)
