"""What an answer of an attempt changes, case by case."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from counterfoil.core.decisions import LONGEST_RETRY_AFTER, Answered, Kept, Move, record_outcome, send_again, settle
from counterfoil.core.events import EventKind
from counterfoil.core.outcomes import AttemptOutcome
from counterfoil.core.reasons import Reason
from counterfoil.core.records import Receipt
from counterfoil.core.standing import Rules, Standing
from counterfoil.core.states import State
from tests.support.standings import KINDS, NOW, OUTSIDE, RUNNING, SECOND, ZERO, after

DONE = Answered(1, AttemptOutcome.DONE, str(Reason.RECEIPT), Receipt(remote_id="452"))
TEMPORARY = Answered(1, AttemptOutcome.TEMPORARY, str(Reason.TEMPORARY_FAILURE))
PERMANENT = Answered(1, AttemptOutcome.PERMANENT, "declined")
NOT_SENT = Answered(1, AttemptOutcome.NOT_SENT, str(Reason.NOT_SENT_SHUTDOWN))
UNCERTAIN = Answered(1, AttemptOutcome.UNCERTAIN, str(Reason.TIMEOUT))
#: An attempt before the running one may have been applied.
DOUBTED = replace(RUNNING, attempt=2, doubtful_since=NOW - 60 * SECOND, doubtful_key=(1, 0), unresolved=True)
AWAITING = replace(
    RUNNING,
    state=State.AWAITING_CONFIRMATION,
    outcome=AttemptOutcome.UNCERTAIN,
    doubtful_since=RUNNING.admitted_at,
    doubtful_key=(1, 0),
    unresolved=True,
)


def settled(rules: Rules, standing: Standing, answered: Answered, *, jitter: float = 0.5, sampled: bool = True) -> Move:
    answered = replace(answered, attempt=standing.attempt)
    move = settle(rules, standing, answered, now=NOW, jitter=jitter, sampled=sampled)
    assert isinstance(move, Move)
    return move


def test_a_receipt_is_probed_after_the_window() -> None:
    """S2: succeeded is not confirmed."""
    move = settled(OUTSIDE, RUNNING, DONE)
    assert (move.to, move.kind, move.wait) == (State.SUCCEEDED, EventKind.RESULT_SAVED, OUTSIDE.window)


def test_a_receipt_outside_the_sample_is_final() -> None:
    """S3: `Confirm.share` leaves it out, so succeeded is the end."""
    assert settled(OUTSIDE, RUNNING, DONE, sampled=False).wait is None


def test_a_receipt_of_a_type_without_proof_is_final() -> None:
    """S3: nobody can ask the sink."""
    move = settled(KINDS["not probed, promises nothing"], RUNNING, DONE)
    assert (move.to, move.wait) == (State.SUCCEEDED, None)


@pytest.mark.parametrize(
    ("kind", "reason"), [("the receipt confirms", Reason.RECEIPT), ("in the ledger", Reason.IN_LEDGER_COMMIT)]
)
def test_a_receipt_that_is_the_evidence_confirms(kind: str, reason: Reason) -> None:
    """S2: the sink's word, or the ledger's own commit."""
    move = settled(KINDS[kind], RUNNING, DONE)
    assert (move.to, move.wait, move.reason) == (State.CONFIRMED, None, reason)


def test_a_receipt_under_one_key_settles_the_earlier_attempts_too() -> None:
    """S1: the sink gave all of them one effect."""
    assert settled(OUTSIDE, DOUBTED, DONE).doubt_over


def test_a_receipt_after_an_accepted_risk_leaves_the_earlier_doubt() -> None:
    """S1, T13: an earlier request may still land, so its entity is not free yet."""
    assert not settled(KINDS["probed, promises nothing"], DOUBTED, DONE).doubt_over
    assert not settled(OUTSIDE, replace(DOUBTED, generation=1), DONE).doubt_over


def test_a_temporary_failure_waits_for_its_backoff_and_may_not_be_admitted_before() -> None:
    """S22, L4: due time and cause are saved."""
    move = settled(OUTSIDE, RUNNING, TEMPORARY)
    assert (move.to, move.reason, move.wait) == (State.RETRY_WAIT, Reason.TEMPORARY_FAILURE, SECOND)
    assert move.not_before_wait


def test_the_backoff_grows_with_the_tries_used_and_starts_anew_after_a_replay() -> None:
    """S22: a replay grants new tries; whatever it grants, the wait stays above zero and below the cap."""
    waits = [settled(OUTSIDE, replace(RUNNING, tries_left=left), TEMPORARY, jitter=0.0).wait for left in (7, 6, 5, 4, 1, 20)]
    assert waits == [2 * SECOND, 4 * SECOND, 8 * SECOND, 16 * SECOND, 128 * SECOND, 2 * SECOND]


@pytest.mark.parametrize(
    ("asked", "least"),
    [
        (timedelta(seconds=30), timedelta(seconds=30)),
        (timedelta(seconds=-30), ZERO),
        (timedelta(days=300), LONGEST_RETRY_AFTER),
    ],
)
def test_a_retry_after_is_obeyed_within_reason_and_still_spread(asked: timedelta, least: timedelta) -> None:
    """D65: a thousand answers that ask for the same second do not return in it."""
    early, late = (settled(OUTSIDE, RUNNING, replace(TEMPORARY, retry_after=asked), jitter=jitter).wait for jitter in (0.0, 0.9))
    assert early is not None
    assert late is not None
    assert least < late < early <= least + OUTSIDE.first


def test_a_retry_after_may_reach_a_cap_that_is_longer_than_the_usual_limit() -> None:
    """L4: a type that waits half a day may be told to."""
    rules = replace(OUTSIDE, cap=timedelta(hours=12))
    wait = settled(rules, RUNNING, replace(TEMPORARY, retry_after=timedelta(hours=9))).wait
    assert wait is not None
    assert wait > timedelta(hours=9)


def test_an_attempt_that_was_not_sent_gives_its_try_back_and_is_due_now() -> None:
    """S22: it costs no try, also when it was the last."""
    for left in (0, 7):
        move = settled(OUTSIDE, replace(RUNNING, tries_left=left), NOT_SENT)
        assert (move.to, move.wait, move.try_back) == (State.RETRY_WAIT, ZERO, True)
        assert not move.not_before_wait


def test_a_temporary_answer_costs_no_try_only_where_its_sink_was_known_to_be_down() -> None:
    """D65, S22: an outage spends no tries, however often one operation is the probe; the wait is a retry's."""
    for left in (0, 7):
        move = settled(OUTSIDE, replace(RUNNING, tries_left=left), replace(TEMPORARY, try_back=True))
        assert (move.to, move.try_back, move.outcome) == (State.RETRY_WAIT, True, AttemptOutcome.TEMPORARY)
        assert move.not_before_wait
    assert not settled(OUTSIDE, RUNNING, TEMPORARY).try_back
    for answer in (replace(NOT_SENT, outcome=AttemptOutcome.PERMANENT), replace(NOT_SENT, outcome=AttemptOutcome.UNCERTAIN)):
        assert not settled(OUTSIDE, RUNNING, replace(answer, try_back=True)).try_back


@pytest.mark.parametrize("max_tries", [1, 2, 3])
def test_a_sink_that_always_fails_is_called_exactly_as_often_as_declared(max_tries: int) -> None:
    """D64: then quarantined once, with the limit as its reason and the last answer as its cause."""
    rules = replace(OUTSIDE, max_tries=max_tries)
    standing, calls = replace(RUNNING, tries_left=max_tries - 1), 1
    move = settled(rules, standing, TEMPORARY)
    while move.to is State.RETRY_WAIT:
        waiting = after(standing, move)
        standing = replace(waiting, state=State.RUNNING, attempt=waiting.attempt + 1, tries_left=waiting.tries_left - 1)
        calls += 1
        move = settled(rules, standing, TEMPORARY)
    assert calls == max_tries
    assert (move.to, move.reason, move.cause) == (State.QUARANTINED, Reason.TRIES_USED_UP, Reason.TEMPORARY_FAILURE)


def test_a_permanent_answer_is_quarantined_with_its_own_code() -> None:
    """S12: the type's closed code is the reason."""
    move = settled(OUTSIDE, RUNNING, PERMANENT)
    assert (move.to, move.reason, move.wait) == (State.QUARANTINED, "declined", OUTSIDE.review_within)


@pytest.mark.parametrize("answered", [PERMANENT, TEMPORARY])
def test_no_failure_is_final_while_an_earlier_attempt_may_have_been_applied(answered: Answered) -> None:
    """S11, T1: the sink may show an effect; it is looked at first."""
    move = settled(OUTSIDE, replace(DOUBTED, tries_left=0), answered)
    assert (move.to, move.outcome, move.reason) == (State.AWAITING_CONFIRMATION, answered.outcome, Reason.PROBE_FIRST)
    assert (move.doubt, move.doubt_over, move.cause) == (False, False, answered.reason)


def test_an_uncertain_attempt_is_probed_before_it_is_sent_again() -> None:
    """S10: it joins the doubtful ones, with its own admission as the start of the horizon."""
    move = settled(OUTSIDE, RUNNING, UNCERTAIN)
    assert (move.to, move.wait, move.doubt) == (State.AWAITING_CONFIRMATION, OUTSIDE.window, True)
    standing = after(RUNNING, move)
    assert (standing.doubtful_since, standing.doubtful_key) == (RUNNING.admitted_at, (1, 0))


def test_an_answer_that_nobody_sorted_is_uncertain() -> None:
    """S1: an outcome that is not one of the certain ones may have been applied."""
    move = settled(OUTSIDE, RUNNING, Answered(1, AttemptOutcome.OPEN, str(Reason.UNCLASSIFIED_EXCEPTION)))
    assert (move.to, move.outcome) == (State.AWAITING_CONFIRMATION, AttemptOutcome.UNCERTAIN)


def test_without_a_probe_an_uncertain_attempt_waits_for_a_backoff_and_is_sent_under_its_key() -> None:
    """S10: the sink keeps the key, so its answer settles both attempts."""
    rules = KINDS["not probed, keyed"]
    move = settled(rules, RUNNING, UNCERTAIN)
    assert move.wait == SECOND
    again = send_again(rules, after(RUNNING, move), now=NOW)
    assert again is not None
    assert (again.to, again.reason, again.outcome) == (State.RETRY_WAIT, Reason.NO_PROBE_RESEND, AttemptOutcome.UNCERTAIN)


@pytest.mark.parametrize(
    ("rules", "standing"),
    [
        (KINDS["not probed, promises nothing"], RUNNING),
        (KINDS["not probed, keyed, money"], RUNNING),
        (KINDS["not probed, keyed"], replace(RUNNING, tries_left=0)),
        (KINDS["not probed, keyed"], replace(RUNNING, cancel_asked=True)),
        (KINDS["not probed, keyed"], replace(RUNNING, admitted_at=NOW - timedelta(hours=2))),
        (KINDS["not probed, keyed"], replace(DOUBTED, generation=1)),
    ],
)
def test_what_may_not_be_sent_again_is_a_persons_turn_at_once(rules: Rules, standing: Standing) -> None:
    """S10, L1: no promise, money, no tries, a cancel, a forgotten key or another key."""
    move = settled(rules, standing, UNCERTAIN)
    assert (move.to, move.wait) == (State.AWAITING_CONFIRMATION, ZERO)
    assert send_again(rules, after(standing, move), now=NOW) is None


def test_an_effect_in_the_ledger_is_never_uncertain() -> None:
    """S1: its rows are rolled back with the transaction, so an error nobody sorted is a temporary one that costs its try."""
    rules = KINDS["in the ledger"]
    assert settled(rules, RUNNING, UNCERTAIN).to is State.RETRY_WAIT
    last = settled(rules, replace(RUNNING, tries_left=0), UNCERTAIN)
    assert (last.to, last.outcome, last.cause) == (
        State.QUARANTINED,
        AttemptOutcome.TEMPORARY,
        Reason.EXCEPTION_ROLLED_BACK,
    )


@pytest.mark.parametrize(
    ("said", "means"),
    [
        (Reason.UNCLASSIFIED_EXCEPTION, Reason.EXCEPTION_ROLLED_BACK),
        (Reason.UNCERTAIN_ANSWER, Reason.EXCEPTION_ROLLED_BACK),
        (Reason.TIMEOUT, Reason.EXCEPTION_ROLLED_BACK),
        (Reason.CONNECTION_LOST, Reason.EXCEPTION_ROLLED_BACK),
        (Reason.WRONG_ANSWER, Reason.WRONG_ANSWER),
    ],
)
def test_no_reason_says_that_an_effect_in_the_ledger_may_have_been_applied(said: Reason, means: Reason) -> None:
    """S1, S12: outside, the same answer keeps its reason and is a doubt."""
    answered = Answered(1, AttemptOutcome.UNCERTAIN, said.value)
    inside = settled(KINDS["in the ledger"], RUNNING, answered)
    assert (inside.reason, inside.outcome) == (means, AttemptOutcome.TEMPORARY)
    assert "may have been applied" not in means.sentence
    assert settled(OUTSIDE, RUNNING, answered).reason == said


def test_an_effect_in_the_ledger_that_lost_its_attempt_is_told_so() -> None:
    """S9: `Kept` means roll back; its receipt proves nothing, for nothing was committed."""
    kept = settle(KINDS["in the ledger"], replace(RUNNING, state=State.RETRY_WAIT), DONE, now=NOW, jitter=0.0, sampled=True)
    assert isinstance(kept, Kept)
    assert not kept.applied


@pytest.mark.parametrize("state", [State.AWAITING_CONFIRMATION, State.RETRY_WAIT, State.QUEUED])
def test_a_late_receipt_of_the_latest_attempt_counts(state: State) -> None:
    """S9: also after its lease."""
    move = settled(OUTSIDE, replace(AWAITING, state=state), DONE)
    assert (move.to, move.doubt_over) == (State.SUCCEEDED, True)


def test_a_late_certain_answer_counts_as_from_running() -> None:
    """S9: the attempt is doubtful no more."""
    retried = settled(OUTSIDE, AWAITING, TEMPORARY)
    assert (retried.to, retried.doubt_over) == (State.RETRY_WAIT, True)
    failed = settled(OUTSIDE, AWAITING, PERMANENT)
    assert (failed.to, failed.doubt_over) == (State.QUARANTINED, True)
    back = settled(OUTSIDE, AWAITING, NOT_SENT)
    assert (back.to, back.try_back, back.doubt_over) == (State.RETRY_WAIT, True, True)


def test_a_late_certain_answer_leaves_the_doubt_about_an_earlier_attempt() -> None:
    """S11: the latest is settled, the one before is not."""
    standing = replace(AWAITING, attempt=2, doubtful_since=NOW - 60 * SECOND)
    stays = settled(OUTSIDE, standing, PERMANENT)
    assert (stays.to, stays.outcome, stays.doubt_over) == (State.AWAITING_CONFIRMATION, AttemptOutcome.PERMANENT, False)
    assert not settled(OUTSIDE, standing, TEMPORARY).doubt_over


def test_a_certain_answer_counts_once() -> None:
    """S9: the second copy of it is evidence."""
    answered = replace(PERMANENT, attempt=2)
    standing = replace(AWAITING, attempt=2, doubtful_since=NOW - 60 * SECOND)
    once = after(standing, settled(OUTSIDE, standing, answered))
    assert isinstance(settle(OUTSIDE, once, answered, now=NOW, jitter=0.0, sampled=True), Kept)


def test_a_cancel_asked_for_makes_the_retry_due_now() -> None:
    """L1: the next legal edge is the cancel's; no backoff stands before it."""
    move = settled(OUTSIDE, replace(RUNNING, cancel_asked=True), TEMPORARY)
    assert (move.to, move.wait, move.not_before_wait) == (State.RETRY_WAIT, ZERO, False)


def test_a_recorded_receipt_of_work_done_elsewhere_counts() -> None:
    """S9: the edge of a late receipt; then it is probed like any other."""
    rules = KINDS["done elsewhere"]
    standing = replace(RUNNING, state=State.AWAITING_CONFIRMATION, attempt=0, tries_left=0, outcome=None, admitted_at=None)
    move = record_outcome(rules, standing, replace(DONE, attempt=0), sampled=True)
    assert isinstance(move, Move)
    assert (move.to, move.reason, move.wait) == (State.SUCCEEDED, Reason.OUTCOME_RECORDED, rules.window)


@pytest.mark.parametrize("answered", [TEMPORARY, PERMANENT, UNCERTAIN])
def test_any_other_recorded_outcome_makes_the_probe_due_and_is_kept(answered: Answered) -> None:
    """S9: for work done elsewhere everything but a receipt is evidence."""
    standing = replace(RUNNING, state=State.AWAITING_CONFIRMATION, attempt=0, tries_left=0, outcome=None, admitted_at=None)
    kept = record_outcome(KINDS["done elsewhere"], standing, replace(answered, attempt=0), sampled=True)
    assert kept == Kept(EventKind.RECORDED, answered.reason, due_now=True)


def test_a_callback_may_bring_the_receipt_late_but_not_while_a_worker_runs_it() -> None:
    """S9: while it runs, the worker's own answer follows."""
    assert isinstance(record_outcome(OUTSIDE, AWAITING, DONE, sampled=True), Move)
    kept = record_outcome(OUTSIDE, RUNNING, DONE, sampled=True)
    assert isinstance(kept, Kept)
    assert kept.applied
    kept = record_outcome(OUTSIDE, AWAITING, PERMANENT, sampled=True)
    assert kept == Kept(EventKind.ANSWER_KEPT, "declined", due_now=True)


def test_a_receipt_for_an_operation_that_was_never_sent_is_evidence_only() -> None:
    """S9: no attempt of ours can have made it."""
    queued = replace(RUNNING, state=State.QUEUED, attempt=0, outcome=None, admitted_at=None)
    for kept in (
        record_outcome(OUTSIDE, queued, replace(DONE, attempt=0), sampled=True),
        settle(OUTSIDE, queued, replace(DONE, attempt=0), now=NOW, jitter=0.0, sampled=True),
    ):
        assert isinstance(kept, Kept)
        assert not kept.applied
