"""Waits between tries: never zero, never past the cap, never an overflow, and spread."""

from __future__ import annotations

import random
from collections import Counter
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from counterfoil.core.backoff import ceiling, delay
from counterfoil.core.effect import Backoff
from counterfoil.core.shards import SHARDS, shard


@pytest.mark.parametrize("tries", [0, 1, 46, 47, 63, 64, 1023, 1024, 10**6])
@pytest.mark.parametrize("first", [0.1, 1.0, timedelta(seconds=1).total_seconds()])
@pytest.mark.parametrize("jitter", [0.0, 0.5, 1.0 - 2**-53])
def test_a_wait_is_above_zero_and_at_most_the_cap_after_any_number_of_tries(tries: int, first: float, jitter: float) -> None:
    """D62: an exponential delay must not overflow before its cap is taken."""
    wait = delay(tries, first, 60.0, jitter)
    assert 0 < wait <= 60
    assert timedelta(0) < timedelta(seconds=wait) <= timedelta(seconds=60)


@given(
    tries=st.integers(min_value=-5, max_value=10**9),
    first=st.floats(min_value=1e-6, max_value=3.2e8),
    cap=st.floats(min_value=1e-6, max_value=3.2e8),
    jitter=st.floats(min_value=0, max_value=1, exclude_max=True),
)
def test_a_wait_never_raises_and_stays_in_its_bounds(tries: int, first: float, cap: float, jitter: float) -> None:
    """D62: for every declaration that is accepted."""
    assert 0 < delay(tries, first, cap, jitter) <= ceiling(tries, first, cap) <= cap


def test_the_longest_wait_doubles_with_each_try_up_to_the_cap() -> None:
    """D62: and the first failure waits for `first`."""
    assert [ceiling(tries, 2.0, 20.0) for tries in range(7)] == [2, 2, 4, 8, 16, 20, 20]


@pytest.mark.parametrize(
    ("tries", "none", "half", "nearly_all"),
    [(1, 2.0, 1.0, 0.002), (2, 4.0, 2.0, 0.004), (3, 8.0, 4.0, 0.008), (5_000, 900.0, 450.0, 0.9)],
)
def test_the_wait_after_each_try_is_exact(tries: int, none: float, half: float, nearly_all: float) -> None:
    """D62: full jitter of nothing, a half and 999 of 1,000 on the default waits of 2 s to 15 min."""
    backoff = Backoff()
    first, cap = backoff.first.total_seconds(), backoff.cap.total_seconds()
    assert delay(tries, first, cap, 0.0) == none
    assert delay(tries, first, cap, 0.5) == half
    assert delay(tries, first, cap, 0.999) == pytest.approx(nearly_all)
    assert delay(tries, first, cap, 1.0 - 2**-53) == 0.001, "almost all of it taken off is still no wait of zero"


def test_a_thousand_that_failed_together_do_not_come_back_together() -> None:
    """D65: a sink is down for a minute; the retries that meet it when it is back are spread, and calls meanwhile are few."""
    draw, backoff = random.Random(65), Backoff()
    first, cap = backoff.first.total_seconds(), backoff.cap.total_seconds()
    due: list[float] = []
    calls = 0
    for _ in range(1000):
        at, tries = 0.0, 1
        while at < 60:
            at += delay(tries, first, cap, draw.random())
            tries += 1
        calls += tries - 1
        due.append(at)
    assert max(Counter(int(at) for at in due).values()) <= 50
    assert calls / 1000 <= 8


def test_a_key_keeps_its_shard_for_ever() -> None:
    """S16: rows of one key stay in one shard, in order; the values are golden."""
    assert [shard(key) for key in (b"", b"452", b"order-0")] == [0, 40, 57]
    assert {shard(str(n).encode()) for n in range(2000)} == set(range(SHARDS))
