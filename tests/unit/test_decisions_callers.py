"""What a caller's own acts mean: how an operation begins, whether it is probed, what a cancel can still do."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from uuid import UUID, uuid5

import pytest

from counterfoil.core.decisions import Ask, Move, TooLate, cancel, first_due, is_sampled
from counterfoil.core.outcomes import AttemptOutcome
from counterfoil.core.states import FINAL, State
from counterfoil.core.transitions import Actor
from tests.support.standings import KINDS, OUTSIDE, RUNNING, SECOND, ZERO, standings


def test_an_accepted_operation_has_all_its_tries_a_command_and_a_due_time() -> None:
    """L5: a command that is lost is sent again when it is due."""
    first = first_due(OUTSIDE, resend_after=60 * SECOND)
    assert (first.state, first.tries_left, first.wait, first.command) == (State.QUEUED, 8, 60 * SECOND, True)


@pytest.mark.parametrize(("not_before", "wait"), [(timedelta(days=2), timedelta(days=2)), (-SECOND, ZERO)])
def test_an_operation_for_later_is_due_then(not_before: timedelta, wait: timedelta) -> None:
    """L4: an instant that has passed is now."""
    assert first_due(OUTSIDE, resend_after=60 * SECOND, not_before=not_before).wait == wait


def test_work_done_elsewhere_begins_awaiting_confirmation_without_a_command() -> None:
    """S4: it is never sent by us, and probed when no outcome was recorded in time."""
    first = first_due(KINDS["done elsewhere"], resend_after=60 * SECOND)
    assert (first.state, first.wait, first.command) == (State.AWAITING_CONFIRMATION, timedelta(hours=6), False)
    assert first.tries_left == 0


def test_the_sample_is_as_large_as_declared_and_the_same_everywhere() -> None:
    """S3: whether succeeded is final depends on the id alone."""
    ids = [uuid5(UUID(int=7), str(n)) for n in range(4000)]
    assert all(is_sampled(one, 1.0) for one in ids)
    assert not any(is_sampled(one, 0.0) for one in ids)
    quarter = {one for one in ids if is_sampled(one, 0.25)}
    assert 900 < len(quarter) < 1100
    assert quarter <= {one for one in ids if is_sampled(one, 0.5)}
    assert is_sampled(UUID(int=2**32 - 1), 1.0)
    assert is_sampled(UUID(int=0), 1e-9)


def test_what_waits_and_was_never_applied_is_cancelled_now() -> None:
    """S11: nothing doubtful, so no effect."""
    for state in (State.QUEUED, State.RETRY_WAIT):
        decision = cancel(replace(RUNNING, state=state, outcome=AttemptOutcome.TEMPORARY))
        assert isinstance(decision, Move)
        assert (decision.to, decision.wait, decision.outcome) == (State.NOT_APPLICABLE, None, AttemptOutcome.TEMPORARY)


@pytest.mark.parametrize("state", [State.QUEUED, State.RETRY_WAIT])
def test_a_cancel_of_something_doubtful_is_remembered_and_its_next_step_comes_now(state: State) -> None:
    """S11: it is looked up instead of sent."""
    decision = cancel(replace(RUNNING, state=state, outcome=AttemptOutcome.UNCERTAIN))
    assert isinstance(decision, Ask)
    assert decision.due_now


@pytest.mark.parametrize("state", [State.RUNNING, State.AWAITING_CONFIRMATION, State.MANUAL_REVIEW])
def test_a_cancel_of_something_in_flight_is_remembered_without_moving_its_due_time(state: State) -> None:
    """S9: the lease, the probe and the review keep their times."""
    decision = cancel(replace(RUNNING, state=state))
    assert isinstance(decision, Ask)
    assert not decision.due_now


@pytest.mark.parametrize("state", [*sorted(FINAL), State.SUCCEEDED, State.COMPENSATING])
def test_what_exists_or_has_ended_cannot_be_cancelled(state: State) -> None:
    """S3: final states absorb; an effect that exists is undone by another operation."""
    for standing in (one for one in standings() if one.state is state):
        assert isinstance(cancel(standing, by=Actor.PERSON), TooLate)


def test_only_a_person_cancels_out_of_quarantine_and_only_where_nothing_is_doubtful() -> None:
    """S11, S13: a program's cancel is remembered; so is a person's after a receipt that came late."""
    standing = replace(RUNNING, state=State.QUARANTINED, outcome=AttemptOutcome.PERMANENT)
    assert isinstance(cancel(standing), Ask)
    assert isinstance(cancel(standing, by=Actor.PERSON), Move)
    assert isinstance(cancel(replace(standing, outcome=AttemptOutcome.APPLIED), by=Actor.PERSON), Ask)
