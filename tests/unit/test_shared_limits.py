"""Slots and tokens that many workers share: never more than there are, and each gets its turn. By property."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from counterfoil.core.shares import Share, fair, share
from counterfoil.core.tokens import BURST, take

NOW = datetime(2026, 12, 1, tzinfo=UTC)


def test_parts_are_even_and_what_one_does_not_want_is_the_others() -> None:
    assert fair(10, [99, 99], 0) == [5, 5]
    assert fair(10, [99, 2], 0) == [8, 2]
    assert fair(10, [0, 0], 0) == [5, 5], "what nobody wants is there when it is needed"
    assert fair(9, [99, 1, 99], 0) == [4, 1, 4]
    assert fair(4, [4], 0) == [4]


def test_where_there_are_fewer_slots_than_workers_the_turn_goes_round() -> None:
    """L3."""
    turns = [fair(1, [5, 5, 5], turn) for turn in range(3)]
    assert sorted(turns) == [[0, 0, 1], [0, 1, 0], [1, 0, 0]]


@given(st.integers(1, 40), st.lists(st.integers(0, 60), min_size=1, max_size=8), st.integers(0, 1000))
def test_parts_are_never_more_than_there_is_and_nobody_gets_less_than_an_even_part_of_it(
    total: int, wanted: list[int], turn: int
) -> None:
    parts = fair(total, wanted, turn)
    assert sum(parts) == total
    assert all(part >= min(want, total // len(wanted)) for part, want in zip(parts, wanted, strict=True))


STEP = st.tuples(st.integers(0, 3), st.integers(0, 30), st.floats(0, 1))


@given(st.integers(1, 20), st.lists(STEP, max_size=80))
def test_whoever_asks_when_all_shares_together_are_never_more_than_there_is(
    total: int, steps: list[tuple[int, int, float]]
) -> None:
    """Each session asks in its own time, with more or fewer of its calls in flight than before, up to its share."""
    shares: dict[int, Share] = {}
    for turn, (session, waiting, of_them) in enumerate(steps):
        before = shares.pop(session, Share(session, 0, 0, 0))
        in_use = round(before.slots * of_them)
        mine = Share(session, before.slots, in_use, in_use + waiting)
        slots = share(total, mine, list(shares.values()), turn)
        assert slots >= in_use
        shares[session] = mine._replace(slots=slots)
        assert sum(one.slots for one in shares.values()) <= total


def test_a_session_that_comes_late_gets_its_part_as_the_first_ones_calls_end() -> None:
    """L3."""
    first = Share(1, share(8, Share(1, 0, 0, 99), [], 0), 8, 99)
    assert first.slots == 8
    late = Share(2, 0, 0, 99)
    assert share(8, late, [first], 0) == 0
    first = first._replace(in_use=3)
    first = first._replace(slots=share(8, first, [late], 0))
    assert first.slots == 4
    assert share(8, late, [first], 0) == 4


def test_a_limit_that_was_lowered_is_reached_as_calls_end() -> None:
    assert share(2, Share(1, 8, 6, 99), [], 0) == 6
    assert share(2, Share(1, 8, 1, 99), [], 0) == 2


@given(
    st.floats(0.05, 5000),
    st.lists(st.tuples(st.floats(0, 3), st.integers(0, 300)), min_size=1, max_size=60),
)
def test_in_any_window_no_more_tokens_are_given_than_the_rate_and_a_short_burst(
    per_second: float, asked: list[tuple[float, int]]
) -> None:
    """Counted, not timed: whatever was asked, and when."""
    spent: datetime | None = None
    now, given_at = NOW, []
    for passed, wanted in asked:
        now += timedelta(seconds=passed)
        block = take(spent, per_second, wanted, now)
        assert 0 <= block.tokens <= wanted
        if block.tokens:
            spent = block.spent_until
        given_at.append((now, block.tokens))
    burst = max(BURST.total_seconds() * per_second, 1)
    for first in range(len(given_at)):
        total = 0
        for at, tokens in given_at[first:]:
            total += tokens
            assert total <= (at - given_at[first][0]).total_seconds() * per_second + burst + 0.01


def test_a_token_that_is_waited_for_is_there_when_it_was_promised() -> None:
    spent: datetime | None = None
    now = NOW
    for _ in range(50):
        block = take(spent, 3.0, 1, now)
        assert block.tokens == 1
        spent = block.spent_until
        assert take(spent, 3.0, 1, now).tokens == 0
        now += block.next_in + timedelta(microseconds=1)
    assert (now - NOW).total_seconds() > 49 / 3.0 - 0.01


def test_rates_at_the_ends_of_what_a_float_holds_are_rates() -> None:
    for per_second in (5e-324, 1e-300, 1e300):
        block = take(NOW - timedelta(days=1), per_second, 5, NOW)
        assert block.tokens in (0, 5)
