"""The headers of dead letters: a closed list that does not grow, however often a record fails."""

from __future__ import annotations

from uuid import UUID

from counterfoil.core.reasons import Reason
from counterfoil.schemas.envelope import DeadLetter, Headers, dead_letter_headers, dead_letter_texts, source


def of_a_record(original: Headers | None) -> Headers:
    letter = DeadLetter(
        cause=UUID(int=1),
        reason=Reason.UNDECODABLE_VALUE.value,
        type="sync_customer",
        consumer="counterfoil/0.1",
        topic="acme.sync_customer.commands",
        partition=17,
        offset=4711,
        timestamp=1_700_000_000_000,
    )
    return dead_letter_headers(source("acme"), dead_letter_texts(letter, original), 9)


def test_a_record_that_fails_fifty_times_has_the_headers_of_the_first_time() -> None:
    """D70: neither a round nor a stack of earlier letters is carried along."""
    first = of_a_record([("traceparent", b"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"), ("x-custom", b"secret")])
    again = first
    for _ in range(50):
        again = of_a_record(again)
    assert again == first
    assert "x-custom" not in dict(first)
    assert len(dict(first)) == len(first)


def test_the_place_that_a_record_had_is_a_header_and_not_a_partition_to_write_to() -> None:
    """D68: the letter goes to the topic by key; a dead-letter topic may have fewer partitions than the source."""
    headers = dict(of_a_record(None))
    assert headers["cf_partition"] == b"17"
    assert headers["cf_offset"] == b"4711"
    assert headers["cf_topic"] == b"acme.sync_customer.commands"
