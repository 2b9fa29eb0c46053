"""What happens to an operation that nobody answered for, or that may not be sent."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from counterfoil.core.decisions import Ask, Move, lease_over, no_longer_wanted, not_admissible, send_again, set_aside
from counterfoil.core.events import EventKind
from counterfoil.core.outcomes import AttemptOutcome
from counterfoil.core.reasons import Reason
from counterfoil.core.standing import Rules, Standing
from counterfoil.core.states import WAITING, State
from counterfoil.core.wanted import Wanted
from tests.support.standings import KINDS, NOW, OUTSIDE, RUNNING, SECOND, ZERO, admitted, after

QUEUED = replace(RUNNING, state=State.QUEUED, attempt=0, outcome=None, tries_left=8, admitted_at=None, attempt_until=None)
DOUBTED = replace(
    RUNNING,
    state=State.RETRY_WAIT,
    outcome=AttemptOutcome.PRESUMED_ABSENT,
    doubtful_since=RUNNING.admitted_at,
    doubtful_key=(1, 0),
)


def moved(decision: Move | None) -> Move:
    assert decision is not None
    return decision


def test_a_running_operation_is_left_alone_while_its_worker_lives_and_its_time_runs() -> None:
    """D59: a live owner is never overtaken."""
    assert lease_over(OUTSIDE, RUNNING, lease_over=False, now=NOW) is None
    assert RUNNING.attempt_until is not None
    assert lease_over(OUTSIDE, RUNNING, lease_over=False, now=RUNNING.attempt_until - timedelta(microseconds=1)) is None


@pytest.mark.parametrize(
    ("over", "later", "reason"), [(True, ZERO, Reason.LEASE_OVER), (False, 19 * SECOND, Reason.ATTEMPT_TIME_OVER)]
)
def test_an_attempt_that_nobody_answers_for_is_looked_up(over: bool, later: timedelta, reason: Reason) -> None:
    """L5, D92: its worker died before, during or after the call; nobody can say which, so it is uncertain."""
    move = moved(lease_over(OUTSIDE, RUNNING, lease_over=over, now=NOW + later))
    assert (move.to, move.outcome, move.reason) == (State.AWAITING_CONFIRMATION, AttemptOutcome.UNCERTAIN, reason)
    assert (move.doubt, move.try_back) == (True, False)


def test_a_lease_of_one_and_a_half_seconds_is_over_after_that_time_and_not_before() -> None:
    """D59: one unit of time everywhere."""
    standing = replace(RUNNING, attempt_until=NOW + timedelta(seconds=1.5))
    assert lease_over(OUTSIDE, standing, lease_over=False, now=NOW + timedelta(seconds=1.499)) is None
    assert lease_over(OUTSIDE, standing, lease_over=False, now=NOW + timedelta(seconds=1.5)) is not None


def test_a_crash_in_the_ledger_is_no_doubt_but_costs_its_try() -> None:
    """S22, D64: no commit, no effect; a last try that crashed is not given again and does not strand the operation."""
    rules = KINDS["in the ledger"]
    last = replace(RUNNING, tries_left=0)
    move = moved(lease_over(rules, last, lease_over=True, now=NOW))
    assert (move.to, move.doubt, move.wait) == (State.RETRY_WAIT, False, ZERO)
    end = moved(not_admissible(rules, after(last, move), NOW))
    assert (end.to, end.reason) == (State.QUARANTINED, Reason.TRIES_USED_UP)


@pytest.mark.parametrize("max_tries", [1, 2, 3])
def test_crashes_are_bounded_by_the_tries(max_tries: int) -> None:
    """S22, D64: a worker that dies on each attempt is given the operation exactly `max_tries` times."""
    rules = replace(KINDS["in the ledger"], max_tries=max_tries)
    standing, attempts = replace(QUEUED, tries_left=max_tries), 0
    while (end := not_admissible(rules, standing, NOW)) is None:
        running = admitted(standing, NOW)
        attempts += 1
        standing = after(running, lease_over(rules, running, lease_over=True, now=NOW))
    assert (attempts, end.to) == (max_tries, State.QUARANTINED)


@pytest.mark.parametrize("state", [state for state in State if state is not State.RUNNING])
def test_only_a_running_operation_has_a_lease_to_lose(state: State) -> None:
    """S3: a late sweep on anything else changes nothing."""
    assert lease_over(OUTSIDE, replace(RUNNING, state=state), lease_over=True, now=NOW) is None


def test_the_key_must_outlast_the_latest_landing_of_a_request_sent_now() -> None:
    """S1, T7: run time, send grace and request life are kept free at the end of the horizon."""
    rules = KINDS["not probed, keyed"]
    assert rules.horizon is not None
    waiting = replace(DOUBTED, state=State.AWAITING_CONFIRMATION, outcome=AttemptOutcome.UNCERTAIN)
    assert waiting.doubtful_since is not None
    last = waiting.doubtful_since + rules.horizon - rules.landing
    assert send_again(rules, waiting, now=last - timedelta(microseconds=1)) is not None
    assert send_again(rules, waiting, now=last) is None


def test_a_key_that_is_kept_for_ever_never_runs_out() -> None:
    """L1: no horizon, no end."""
    rules = replace(KINDS["not probed, keyed"], horizon=None)
    waiting = replace(DOUBTED, state=State.AWAITING_CONFIRMATION, outcome=AttemptOutcome.UNCERTAIN)
    assert send_again(rules, waiting, now=NOW + timedelta(days=3000)) is not None


def test_a_permanent_answer_is_not_sent_again_because_an_earlier_attempt_is_doubtful() -> None:
    """S11: repeating cannot help; it is a person's turn."""
    waiting = replace(DOUBTED, state=State.AWAITING_CONFIRMATION, outcome=AttemptOutcome.PERMANENT)
    assert send_again(KINDS["not probed, keyed"], waiting, now=NOW) is None


@pytest.mark.parametrize("standing", [QUEUED, DOUBTED, replace(DOUBTED, outcome=AttemptOutcome.TEMPORARY)])
def test_what_may_be_sent_is_let_through(standing: Standing) -> None:
    """S10: no doubt, or the sink keeps the key."""
    assert not_admissible(OUTSIDE, standing, NOW) is None


@pytest.mark.parametrize(
    ("rules", "standing"),
    [
        (KINDS["probed, promises nothing"], DOUBTED),
        (OUTSIDE, replace(DOUBTED, generation=1)),
        (OUTSIDE, replace(DOUBTED, revision=2)),
        (OUTSIDE, replace(DOUBTED, doubtful_since=NOW - timedelta(hours=1))),
    ],
)
def test_what_is_not_harmless_is_looked_up_instead_of_sent(rules: Rules, standing: Standing) -> None:
    """S10, T4, T5: no promise, another key, another revision, or past the horizon."""
    move = moved(not_admissible(rules, standing, NOW))
    assert (move.to, move.reason, move.wait) == (State.AWAITING_CONFIRMATION, Reason.PROBE_FIRST, rules.window)


def test_a_version_guard_makes_a_repeat_harmless_without_a_horizon() -> None:
    """T2: or it would be looked up for ever."""
    assert not_admissible(KINDS["probed, version guard"], replace(DOUBTED, generation=5), NOW + timedelta(days=9)) is None


def test_an_accepted_risk_lets_one_admission_through() -> None:
    """S10, T3: and the next one not."""
    rules = KINDS["probed, promises nothing"]
    standing = replace(DOUBTED, accepted_risk=True)
    assert not_admissible(rules, standing, NOW) is None
    running = admitted(standing, NOW)
    waiting = replace(running, state=State.RETRY_WAIT, outcome=AttemptOutcome.TEMPORARY)
    assert moved(not_admissible(rules, waiting, NOW)).to is State.AWAITING_CONFIRMATION


def test_a_cancel_is_honoured_where_nothing_can_have_been_applied_and_else_looked_up() -> None:
    """S11: cancelled means no effect."""
    now = moved(not_admissible(OUTSIDE, replace(QUEUED, cancel_asked=True), NOW))
    assert (now.to, now.reason, now.wait) == (State.NOT_APPLICABLE, Reason.CANCELLED, None)
    first = moved(not_admissible(OUTSIDE, replace(DOUBTED, cancel_asked=True, accepted_risk=True), NOW))
    assert (first.to, first.reason) == (State.AWAITING_CONFIRMATION, Reason.CANCEL_ASKED)


def test_what_cannot_be_sent_is_quarantined_with_its_reason_unless_it_may_have_been_applied() -> None:
    """S11, D07: a record that can never be sent; its cause is kept when it is looked up first."""
    gone = moved(set_aside(OUTSIDE, QUEUED, str(Reason.MESSAGE_TOO_LARGE)))
    assert (gone.to, gone.reason, gone.outcome) == (State.QUARANTINED, Reason.MESSAGE_TOO_LARGE, None)
    first = moved(set_aside(OUTSIDE, DOUBTED, str(Reason.MESSAGE_TOO_LARGE)))
    assert (first.to, first.cause) == (State.AWAITING_CONFIRMATION, Reason.MESSAGE_TOO_LARGE)
    assert set_aside(OUTSIDE, RUNNING, str(Reason.MESSAGE_TOO_LARGE)) is None


@pytest.mark.parametrize("state", list(State))
@pytest.mark.parametrize("wanted", list(Wanted))
@pytest.mark.parametrize("doubtful", [False, True])
def test_what_nobody_wants_is_closed_before_a_send_or_remembered_where_it_may_have_been_applied(
    state: State, wanted: Wanted, doubtful: bool
) -> None:
    """S3, S11: only what waits for a send, and never over a doubt."""
    standing = replace(DOUBTED if doubtful else QUEUED, state=state)
    decided = no_longer_wanted(standing, wanted)
    if wanted is Wanted.YES or state not in WAITING:
        assert decided is None
    elif doubtful:
        assert decided == Ask(EventKind.CANCEL_ASKED, Reason.CANCEL_ASKED, due_now=True)
        assert no_longer_wanted(replace(standing, cancel_asked=True), wanted) is None
    else:
        assert isinstance(decided, Move)
        assert (decided.to, decided.reason, decided.wait) == (State.NOT_APPLICABLE, wanted.value, None)
