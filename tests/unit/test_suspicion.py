"""Whom the deaths of workers accuse: the record that kills, and no other."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from counterfoil.core.suspicion import ALONE, INNOCENT, MOST_KILLS, Suspicion, after_death


def spans(first: int, end: int, suspicion: Suspicion, size: int) -> Iterator[tuple[int, int]]:
    """The marks of a worker that goes from one offset to another: batches of `size`, suspects alone."""
    at = first
    while at < end:
        if suspicion.covers(at):
            yield at, at
            at += 1
            continue
        last = at
        while last + 1 < end and last + 1 - at < size and not suspicion.covers(last + 1):
            last += 1
        yield at, last
        at = last + 1


def test_nobody_is_suspected_before_a_death() -> None:
    """S23."""
    assert not INNOCENT.covers(0)
    assert not INNOCENT.guilty(0)
    assert INNOCENT.accusers(0) == ()


@pytest.mark.parametrize("size", [1, 2, 5, 100])
def test_a_killer_is_given_up_after_exactly_three_deaths_whatever_the_batch(size: int) -> None:
    """S23."""
    suspicion, deaths = INNOCENT, 0
    while not suspicion.guilty(7):
        first, last = next(span for span in spans(3, 12, suspicion, size) if span[0] <= 7 <= span[1])
        deaths += 1
        suspicion = after_death(suspicion, first, last, deaths)
    assert deaths == MOST_KILLS
    assert set(suspicion.accusers(7)) == {1, 2, 3}
    assert not any(suspicion.guilty(offset) for offset in range(3, 12) if offset != 7)


def test_a_second_killer_of_the_same_batch_is_found_after_the_first() -> None:
    """S23: what is known of the batch is kept until it is passed."""
    killers, given_up, kills, session = {4, 6}, set[int](), {4: 0, 6: 0}, 0
    suspicion = INNOCENT
    while given_up != killers:
        for first, last in spans(3, 9, suspicion, 10):
            inside = sorted(offset for offset in killers - given_up if first <= offset <= last)
            if not inside:
                continue
            if suspicion.guilty(inside[0]):
                given_up.add(inside[0])
                continue
            session += 1
            kills[inside[0]] += 1
            suspicion = after_death(suspicion, first, last, session)
            break
    assert kills == {4: MOST_KILLS, 6: ALONE}  # of the first death nobody knows whose it was: it counts against both


def test_a_death_past_the_suspects_begins_anew() -> None:
    """S23: they were all decoded, or given up."""
    was = after_death(after_death(INNOCENT, 3, 9, 1), 5, 5, 2)
    assert after_death(was, 10, 20, 3) == after_death(INNOCENT, 10, 20, 3)
    assert after_death(was, 10, 10, 3) == after_death(INNOCENT, 10, 10, 3)


def test_a_death_before_the_suspects_keeps_them() -> None:
    """S23: the worker that took over died of something else, on its way to them."""
    was = after_death(after_death(INNOCENT, 10, 20, 1), 15, 15, 2)
    now = after_death(was, 5, 9, 3)
    assert (now.first, now.last) == (5, 20)
    assert now.guilty(15) is False
    assert after_death(now, 15, 15, 4).guilty(15)


def test_sessions_that_live_or_ended_in_order_do_not_count() -> None:
    """S23, S9: a worker that was stopped and goes on did not die of the record."""
    guilty = after_death(after_death(after_death(INNOCENT, 3, 9, 1), 5, 5, 2), 5, 5, 3)
    assert guilty.guilty(5)
    assert not guilty.acquitted(frozenset({1})).guilty(5)
    assert not guilty.acquitted(frozenset({3})).guilty(5)
    assert guilty.acquitted(frozenset({9})).guilty(5)


@settings(max_examples=300)
@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 5), st.integers(1, 8)), max_size=6), st.integers(0, 30))
def test_deaths_of_several_records_in_hand_never_give_up_one(deaths: list[tuple[int, int, int]], offset: int) -> None:
    """S23: an innocent record is given up only for deaths in which it was alone in hand, at least twice."""
    suspicion, alone = INNOCENT, 0
    for session, (first, more, _) in enumerate(deaths, 1):
        suspicion = after_death(suspicion, first, first + more, session)
        alone += first == offset and not more
    if suspicion.guilty(offset):
        assert alone >= ALONE
        assert len(suspicion.accusers(offset)) >= MOST_KILLS
