"""How an HTTP answer to a write is taken: what is not certain is uncertain."""

from datetime import timedelta

import pytest

from counterfoil.core.errors import Permanent, Temporary, Uncertain
from counterfoil.sinks.answers import LONGEST_ASKED_FOR, Answers, retry_after


@pytest.mark.parametrize("status", [200, 201, 202, 204, 299])
def test_a_2xx_is_no_error(status: int) -> None:
    assert Answers().outcome(status, {}) is None


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308, 408, 409, 412, 418, 500, 502, 503, 504, 599, 100, 999])
def test_redirects_conflicts_and_server_errors_are_uncertain(status: int) -> None:
    """D61: 409 "key in use" says that another attempt may still land."""
    assert isinstance(Answers().outcome(status, {}), Uncertain)


@pytest.mark.parametrize(("status", "code"), [(400, "http_400"), (413, "http_413"), (422, "http_422")])
def test_a_refused_content_is_permanent_with_a_closed_code(status: int, code: str) -> None:
    outcome = Answers().outcome(status, {})
    assert isinstance(outcome, Permanent)
    assert outcome.code == code
    assert code in Answers().codes


def test_a_rate_limit_is_temporary_and_its_wait_is_kept() -> None:
    outcome = Answers().outcome(429, {"Retry-After": "7"})
    assert isinstance(outcome, Temporary)
    assert outcome.retry_after == timedelta(seconds=7)


@pytest.mark.parametrize("text", ["", "soon", "-5", "1.5", "0", "٣", "Wed, 99 Foo 2026 00:00:00 GMT", None])
def test_a_wait_that_cannot_be_read_is_none(text: str | None) -> None:
    assert retry_after(text, "Wed, 02 Dec 2026 12:00:00 GMT") is None


def test_a_wait_is_never_longer_than_a_day() -> None:
    """D62: a number of sixty digits does not overflow."""
    assert retry_after("9" * 60) == LONGEST_ASKED_FOR
    assert retry_after("999999") == LONGEST_ASKED_FOR


def test_a_date_is_held_against_the_answers_own_clock() -> None:
    now = "Wed, 02 Dec 2026 12:00:00 GMT"
    assert retry_after("Wed, 02 Dec 2026 12:01:30 GMT", now) == timedelta(seconds=90)
    assert retry_after("Wed, 02 Dec 2026 11:00:00 GMT", now) is None
    assert retry_after("Wed, 02 Dec 2026 12:01:30 GMT", None) is None
