"""`make ready` fails where one of the three operations is shown otherwise than it must be."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from counterfoil.demo.ready.checks import Check, OnTopics, invalid_payload, killed_before_the_commit, temporary_errors
from counterfoil.sinks.journal import Entry, Fate

EFFECT = Entry("r", Fate.APPLIED, "saved", "digest", 0.0, changed_content=True)
AT = "2026-01-01T00:00:{:06.3f}+00:00"


def line(event: str, second: float, **detail: Any) -> dict[str, Any]:
    return {"event": event, "at": AT.format(second), "detail": detail}


def shown(*lines: dict[str, Any], **rest: Any) -> dict[str, Any]:
    given = {"state": "succeeded", "final": True, "attempt": 1, "of": 5, "cause": {"reason": "receipt", "sentence": "s"}}
    return {**given, "log": list(lines), **rest}


def failed(checks: Iterable[Check]) -> list[str]:
    return [check.sentence for check in checks if not check.holds]


KILLED = [
    line("accepted", 0),
    line("published", 1),
    line("received", 2),
    line("admitted", 2),
    line("result_saved", 3),
    line("redelivered", 4),
    line("published", 5),
    line("ack_sent", 5),
]
RETRIED = [
    line("accepted", 0),
    line("admitted", 1),
    line("retry_scheduled", 2, wait=1.5),
    line("admitted", 3.5),
    line("result_saved", 4),
    line("ack_sent", 4),
]
INVALID = [line("accepted", 0), line("admitted", 1), line("quarantined", 2), line("ack_sent", 3)]
REFUSED = {"state": "quarantined", "final": False, "cause": {"reason": "http_422", "sentence": "s"}}
TOPICS = OnTopics([("t", 0, 4)], ("t", 0, 5), 1)


def test_what_must_be_shown_passes() -> None:
    assert not failed(killed_before_the_commit(shown(*KILLED), [EFFECT]))
    assert not failed(temporary_errors(shown(*RETRIED), [EFFECT], 1, 5))
    assert not failed(invalid_payload(shown(*INVALID, **REFUSED), [], TOPICS))


@pytest.mark.parametrize(
    ("lines", "journal", "said"),
    [
        ([*KILLED[:4], KILLED[7], KILLED[4]], [EFFECT], "result_saved stands before the first ack_sent"),
        ([*KILLED, line("admitted", 6)], [EFFECT], "there was one attempt"),
        ([*KILLED[:5], KILLED[7]], [EFFECT], "the redelivery adds"),
        (KILLED, [EFFECT, EFFECT], "one effect"),
        (KILLED, [], "one effect"),
    ],
)
def test_a_kill_that_cost_something_is_seen(lines: list[dict[str, Any]], journal: list[Entry], said: str) -> None:
    """S1: an acknowledgement before the result, a second attempt, a lost redelivery, a doubled or missing effect."""
    assert any(said in sentence for sentence in failed(killed_before_the_commit(shown(*lines), journal)))


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ([*RETRIED[:3], line("admitted", 2.9), *RETRIED[4:]], "before its due time"),
        ([*RETRIED[:2], line("retry_scheduled", 2), *RETRIED[3:]], "each retry has its due time"),
        ([*RETRIED, *RETRIED[1:4]], "attempts are counted and bounded"),
    ],
)
def test_retries_without_a_bound_or_a_due_time_are_seen(lines: list[dict[str, Any]], said: str) -> None:
    """S22, L4."""
    assert any(said in sentence for sentence in failed(temporary_errors(shown(*lines), [EFFECT], 1, 5)))


@pytest.mark.parametrize(
    ("topics", "said"),
    [
        (OnTopics([("t", 0, 4), ("t", 0, 6)], ("t", 0, 5), 1), "behind a later marker"),
        (OnTopics([("t", 0, 4), ("retry", 0, 0)], ("t", 0, 5), 1), "behind a later marker"),
        (OnTopics([("t", 0, 4)], ("t", 0, 5), 0), "dead-letter topic"),
    ],
)
def test_an_invalid_payload_that_comes_back_or_leaves_no_letter_is_seen(topics: OnTopics, said: str) -> None:
    """S12: it is not put behind the others again, and a person finds it."""
    assert any(said in sentence for sentence in failed(invalid_payload(shown(*INVALID, **REFUSED), [], topics)))
