"""Reasons, events and log lines are closed lists with words for people."""

from __future__ import annotations

import re

import pytest

from counterfoil.core.events import EventKind, LogEvent
from counterfoil.core.reasons import Reason, reason_advice, reason_sentence


@pytest.mark.parametrize("reason", list(Reason))
def test_every_reason_has_a_code_a_sentence_and_what_to_do_next(reason: Reason) -> None:
    """S12: closed codes; the sentence takes a place behind it, so it has no full stop."""
    assert re.fullmatch(r"[a-z][a-z0-9_]{0,62}", reason.value)
    assert reason.value == reason.name.lower()
    assert reason.sentence[0].isupper()
    assert not reason.sentence.endswith(".")
    assert reason.advice.endswith(".")
    assert (reason_sentence(reason.value), reason_advice(reason.value)) == (reason.sentence, reason.advice)


def test_a_code_that_is_none_of_ours_is_the_types_own() -> None:
    """S12: what an effect's `Permanent(code)` stored is told apart from our reasons."""
    assert reason_sentence("card_declined") == "A code of the operation type"
    assert "owner" in reason_advice("card_declined")


@pytest.mark.parametrize("member", [*EventKind, *LogEvent])
def test_an_event_prints_as_its_code(member: EventKind | LogEvent) -> None:
    """S18: events and log lines have names of a closed list, never text of their own."""
    assert str(member) == member.value == member.name.lower()
