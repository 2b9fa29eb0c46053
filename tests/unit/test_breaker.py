"""The breaker of a sink: what opens it, who probes, what closes it. By enumeration and by property."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from counterfoil.core.breaker import LONGEST, Breaker, Habits, Heard, Position, Sign, claim, hear, sign
from counterfoil.core.decisions import Answered
from counterfoil.core.outcomes import AttemptOutcome
from counterfoil.core.reasons import Reason

NOW = datetime(2026, 12, 1, tzinfo=UTC)
HABITS = Habits(after=3, wait=timedelta(seconds=5))
WITHIN = timedelta(seconds=30)
US, OTHER = 1, 2
OPEN = hear(Breaker(), US, Heard(3), HABITS, NOW)
UNTIL = NOW + HABITS.wait
HALF = claim(OPEN, US, WITHIN, UNTIL)


def test_operations_that_fail_in_a_row_on_any_workers_open_it() -> None:
    """D65: what each worker heard is added up."""
    once = hear(Breaker(), US, Heard(2), HABITS, NOW)
    assert (once.position, once.failures) == (Position.CLOSED, 2)
    opened = hear(once, OTHER, Heard(1), HABITS, NOW)
    assert opened == Breaker(Position.OPEN, 3, 1, NOW, UNTIL, None) == OPEN


def test_a_sign_of_life_on_any_worker_begins_the_count_anew() -> None:
    once = hear(Breaker(), US, Heard(2), HABITS, NOW)
    assert hear(once, OTHER, Heard(0, alive=True), HABITS, NOW) == Breaker()
    assert hear(once, OTHER, Heard(2, alive=True), HABITS, NOW).failures == 2, "only those after the sign"


def test_while_it_is_open_calls_that_began_before_change_nothing() -> None:
    for heard in (Heard(9), Heard(0, alive=True), Heard(1, alive=True, probe=Sign.ALIVE)):
        assert hear(OPEN, US, heard, HABITS, NOW) == OPEN


def test_one_session_probes_and_nobody_before_it_is_time() -> None:
    """D65: calls while a sink is down are bounded."""
    assert claim(OPEN, US, WITHIN, UNTIL - timedelta(microseconds=1)) == OPEN
    assert (HALF.position, HALF.prober, HALF.opened_at) == (Position.HALF_OPEN, US, NOW)
    assert claim(HALF, OTHER, WITHIN, UNTIL) == HALF
    assert claim(Breaker(), US, WITHIN, NOW) == Breaker()


def test_a_probe_that_is_lost_is_taken_over() -> None:
    """L1, L6: a worker killed while its call probes does not keep the sink shut."""
    later = UNTIL + WITHIN
    taken = claim(HALF, OTHER, WITHIN, later)
    assert (taken.prober, taken.until, taken.opened_at) == (OTHER, later + WITHIN, NOW)
    assert hear(taken, US, Heard(probe=Sign.ALIVE), HABITS, later) == taken, "the one that was lost has no say any more"


def test_a_probe_closes_it_or_waits_twice_as_long_up_to_a_minute() -> None:
    assert hear(HALF, US, Heard(probe=Sign.ALIVE), HABITS, UNTIL) == Breaker()
    waits, breaker, now = [], HALF, UNTIL
    for _ in range(8):
        breaker = hear(breaker, US, Heard(probe=Sign.DOWN), HABITS, now)
        assert (breaker.position, breaker.prober, breaker.opened_at) == (Position.OPEN, None, NOW)
        assert breaker.until is not None
        waits.append((breaker.until - now).total_seconds())
        now = breaker.until
        breaker = claim(breaker, US, WITHIN, now)
    assert waits == [10, 20, 40, 60, 60, 60, 60, 60]
    assert LONGEST.total_seconds() == 60


def test_a_probe_that_said_nothing_leaves_the_turn_to_anybody() -> None:
    free = hear(HALF, US, Heard(probe=Sign.NOTHING), HABITS, UNTIL)
    assert (free.position, free.openings) == (Position.OPEN, 1)
    assert claim(free, OTHER, WITHIN, UNTIL).prober == OTHER


@pytest.mark.parametrize(
    ("outcome", "reason", "retry_after", "said"),
    [
        (AttemptOutcome.DONE, Reason.RECEIPT, None, Sign.ALIVE),
        (AttemptOutcome.PERMANENT, Reason.PERMANENT_FAILURE, None, Sign.ALIVE),
        (AttemptOutcome.TEMPORARY, Reason.TEMPORARY_FAILURE, None, Sign.DOWN),
        (AttemptOutcome.TEMPORARY, Reason.TEMPORARY_FAILURE, timedelta(0), Sign.ALIVE),
        (AttemptOutcome.TEMPORARY, Reason.TEMPORARY_FAILURE, timedelta(minutes=1), Sign.ALIVE),
        (AttemptOutcome.UNCERTAIN, Reason.TIMEOUT, None, Sign.DOWN),
        (AttemptOutcome.UNCERTAIN, Reason.CONNECTION_LOST, None, Sign.DOWN),
        (AttemptOutcome.UNCERTAIN, Reason.UNCERTAIN_ANSWER, None, Sign.DOWN),
        (AttemptOutcome.UNCERTAIN, Reason.UNCLASSIFIED_EXCEPTION, None, Sign.DOWN),
        (AttemptOutcome.UNCERTAIN, Reason.WRONG_ANSWER, None, Sign.NOTHING),
        (AttemptOutcome.NOT_SENT, Reason.NOT_SENT_BREAKER, None, Sign.NOTHING),
    ],
)
def test_each_answer_says_something_about_its_sink_or_nothing(
    outcome: AttemptOutcome, reason: Reason, retry_after: timedelta | None, said: Sign
) -> None:
    """A record that is told when to come back is its own affair: the sink spoke."""
    assert sign(Answered(1, outcome, reason.value, retry_after=retry_after)) is said


STEPS = st.tuples(
    st.sampled_from((US, OTHER, 3)),
    st.builds(Heard, st.integers(0, 4), st.booleans(), st.sampled_from((None, *Sign))),
    st.booleans(),
    st.floats(0, 60),
)


@given(st.lists(STEPS, max_size=60))
def test_whatever_is_heard_it_is_one_of_three_things_and_has_one_prober(steps: list[tuple[int, Heard, bool, float]]) -> None:
    breaker, now = Breaker(), NOW
    for session, heard, claims, passed in steps:
        now += timedelta(seconds=passed)
        before = breaker
        breaker = hear(breaker, session, heard, HABITS, now)
        if claims:
            breaker = claim(breaker, session, WITHIN, now)
        closed = breaker.position is Position.CLOSED
        assert closed == (breaker.opened_at is None) == (breaker.until is None)
        assert (breaker.prober is not None) == (breaker.position is Position.HALF_OPEN)
        assert closed == (breaker.failures < HABITS.after)
        if before.position is not Position.CLOSED and closed:
            assert (before.prober, heard.probe) == (session, Sign.ALIVE), "only its prober closes it"
        if not closed and before.opened_at is not None:
            assert breaker.opened_at == before.opened_at
