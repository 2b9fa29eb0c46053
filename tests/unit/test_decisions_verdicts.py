"""What follows a verdict: every state × verdict is a row of the table or nothing, and nothing is guessed."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from itertools import product

import pytest

from counterfoil.core.decisions import Move, send_again
from counterfoil.core.decisions.verdicts import is_missing, linked_ended, remedy, without_probe
from counterfoil.core.outcomes import DOUBTFUL, AttemptOutcome
from counterfoil.core.policy import Policy, Remedy, Risk
from counterfoil.core.reasons import Reason
from counterfoil.core.states import State
from counterfoil.core.transitions import Actor, is_edge
from counterfoil.core.verdicts import Mandate, Seen, Verdict
from tests.support.standings import KINDS, NOW, OUTSIDE, RUNNING, SECOND, after, standings

MANDATES = [Mandate(requeue, compensate, hard) for requeue, compensate, hard in product((False, True), repeat=3)]
FREE = Mandate(requeue=True, compensate=True)
#: The earliest probe that sees all that the last attempt of `standings()` may have done.
PAST = RUNNING.attempt_until
assert PAST is not None
PAST += OUTSIDE.absence_wait
AWAITING = replace(
    RUNNING,
    state=State.AWAITING_CONFIRMATION,
    outcome=AttemptOutcome.UNCERTAIN,
    doubtful_since=NOW - SECOND,
    doubtful_key=(1, 0),
    unresolved=True,
)


def seen(verdict: Verdict, **facts: bool) -> Seen:
    assert PAST is not None
    return Seen(verdict, RUNNING.sequence, PAST, **facts)


def test_every_remedy_is_a_row_of_the_table() -> None:
    """S3: for every standing, verdict and mandate; an ambiguous answer never acts (S14)."""
    made = set()
    for standing, verdict, mandate in product(standings(), Verdict, MANDATES):
        move = remedy(OUTSIDE, mandate, standing, seen(verdict), now=NOW)
        if move is None:
            assert standing.state not in {State.AWAITING_CONFIRMATION, State.SUCCEEDED}
            continue
        assert is_edge(standing.state, move.to, Actor.RECONCILER), (standing, verdict, move)
        assert verdict is not Verdict.AMBIGUOUS or move.to is State.MANUAL_REVIEW
        made.add(move.to)
    assert made == {
        State.CONFIRMED,
        State.NOT_APPLICABLE,
        State.RETRY_WAIT,
        State.QUARANTINED,
        State.MANUAL_REVIEW,
        State.COMPENSATING,
    }


def test_a_verdict_on_an_older_sequence_is_void() -> None:
    """S9, T6: somebody else was first."""
    for verdict in Verdict:
        assert remedy(OUTSIDE, FREE, replace(AWAITING, sequence=AWAITING.sequence + 2), seen(verdict), now=NOW) is None


def test_nothing_is_closed_or_undone_while_a_request_may_still_land() -> None:
    """S11, S14: a probe asked one moment too early says nothing about what is absent or differs."""
    for standing, verdict in product(standings(), (Verdict.MISSING, Verdict.DIVERGENT)):
        early = replace(seen(verdict), asked_at=seen(verdict).asked_at - timedelta(microseconds=1))
        assert remedy(OUTSIDE, FREE, standing, early, now=NOW) is None


@pytest.mark.parametrize("probes", [1, 2, 3])
def test_missing_needs_agreeing_probes_past_the_absence_wait(probes: int) -> None:
    """S14, D77: early ones do not count, and nothing has to be waited for where nothing was sent."""
    ended = RUNNING.attempt_until
    assert ended is not None
    early, late = ended + OUTSIDE.absence_wait - SECOND, ended + OUTSIDE.absence_wait
    assert not is_missing(OUTSIDE, [early] * 9, ended=ended, probes=probes)
    assert not is_missing(OUTSIDE, [early] * 9 + [late] * (probes - 1), ended=ended, probes=probes)
    assert is_missing(OUTSIDE, [early] + [late] * probes, ended=ended, probes=probes)
    assert is_missing(OUTSIDE, [NOW] * probes, ended=None, probes=probes)


def test_the_reconciler_sends_again_only_what_is_harmless_and_was_allowed() -> None:
    """S10: never what moves money or is hard to repeat, never without tries, never what somebody cancelled or replaced."""
    sent = 0
    for rules, standing, mandate in product(KINDS.values(), standings(), MANDATES):
        move = remedy(rules, mandate, standing, seen(Verdict.MISSING), now=NOW)
        if move is None or move.to is not State.RETRY_WAIT:
            continue
        sent += 1
        assert mandate.requeue
        assert not mandate.hard_to_repeat
        assert not rules.money
        assert rules.harmless(standing, NOW)
        assert standing.tries_left > 0
        assert not standing.cancel_asked
        assert standing.outcome is not AttemptOutcome.PERMANENT
        after_it = after(standing, move)
        assert not after_it.unresolved
        assert after_it.doubtful == standing.doubtful
    assert sent > 50


def test_the_head_of_a_strict_entity_that_moved_on_keeps_what_it_passed_from_being_sent() -> None:
    """S7, T15."""
    move = remedy(OUTSIDE, FREE, AWAITING, seen(Verdict.MISSING, passed=True), now=NOW)
    assert move is not None
    assert (move.to, move.reason) == (State.MANUAL_REVIEW, Reason.MISSING.value)


@pytest.mark.parametrize(
    ("cancel", "newer", "reason"), [(True, False, "cancelled"), (True, True, "cancelled"), (False, True, "superseded")]
)
def test_what_nobody_wants_any_more_is_closed_before_it_is_sent_again(cancel: bool, newer: bool, reason: str) -> None:
    """L1, T11: missing, and a newer version exists or a cancel was asked for: it has no effect and never will."""
    standing = replace(AWAITING, cancel_asked=cancel)
    move = remedy(OUTSIDE, FREE, standing, seen(Verdict.MISSING, newer=newer), now=NOW)
    assert move is not None
    assert (move.to, move.reason, move.outcome) == (State.NOT_APPLICABLE, reason, AttemptOutcome.CLOSED)
    assert not after(standing, move).doubtful


@pytest.mark.parametrize(
    ("outcome", "tries", "reason"),
    [
        (AttemptOutcome.PERMANENT, 3, "permanent_failure"),
        (AttemptOutcome.UNCERTAIN, 0, "tries_used_up"),
        (AttemptOutcome.TEMPORARY, 0, "tries_used_up"),
    ],
)
def test_what_is_missing_and_cannot_go_on_is_quarantined_with_its_attempts_closed(
    outcome: AttemptOutcome, tries: int, reason: str
) -> None:
    """S11, T4: a replay afterwards needs no horizon."""
    standing = replace(AWAITING, outcome=outcome, tries_left=tries)
    move = remedy(OUTSIDE, FREE, standing, seen(Verdict.MISSING), now=NOW)
    assert move is not None
    assert (move.to, move.reason) == (State.QUARANTINED, reason)
    assert not after(standing, move).doubtful


def test_missing_against_a_saved_receipt_is_a_persons() -> None:
    """S14: also where a cancel was asked for: a receipt says that there was an effect."""
    for cancel in (False, True):
        saved = replace(AWAITING, state=State.SUCCEEDED, outcome=AttemptOutcome.DONE, cancel_asked=cancel)
        kept = replace(AWAITING, cancel_asked=cancel)
        facts = seen(Verdict.MISSING, newer=True)
        for standing, evidence in ((saved, facts), (kept, replace(facts, receipt=True))):
            move = remedy(OUTSIDE, FREE, standing, evidence, now=NOW)
            assert move is not None
            assert move.to is State.MANUAL_REVIEW


def test_what_nobody_can_ask_is_sent_again_under_its_key_or_handed_to_a_person() -> None:
    """L1: never neither, never both, and never for a type that has a probe."""
    for rules, standing in product(KINDS.values(), standings()):
        move = without_probe(rules, standing, now=NOW)
        awaits = standing.state is State.AWAITING_CONFIRMATION and not rules.has_probe
        again = send_again(rules, standing, now=NOW) if awaits else None
        assert (move is not None) == (awaits and again is None)
        if move is not None:
            assert (move.to, move.reason) == (State.MANUAL_REVIEW, "no_probe")


@pytest.mark.parametrize(("with_effect", "to"), [(True, State.COMPENSATED), (False, State.MANUAL_REVIEW)])
def test_a_compensation_ends_as_its_linked_operation_does(with_effect: bool, to: State) -> None:
    """S20."""
    for standing in standings():
        move = linked_ended(OUTSIDE, standing, with_effect=with_effect)
        assert (move is not None) == (standing.state is State.COMPENSATING)
        if isinstance(move, Move):
            assert move.to is to
            assert is_edge(standing.state, to, Actor.RECONCILER)


def test_a_confirmed_doubt_is_kept_as_applied() -> None:
    """S2: what certainly did not reach the sink stays what it was."""
    for standing in (one for one in standings() if one.state is State.AWAITING_CONFIRMATION):
        move = remedy(OUTSIDE, FREE, standing, seen(Verdict.CORRECT), now=NOW)
        assert move is not None
        assert move.outcome is (AttemptOutcome.APPLIED if standing.outcome in DOUBTFUL else standing.outcome)


def test_a_mandate_is_the_policy_and_what_is_in_force() -> None:
    """S17: in observe mode nothing is enforced; the ledger's settings win."""
    policy = Policy[object](missing=Remedy.REQUEUE, enforce=[Remedy.REQUEUE], risk=Risk(hard_to_repeat=True))
    assert Mandate.of(policy) == Mandate(requeue=True, hard_to_repeat=True)
    assert Mandate.of(policy, ()) == Mandate(hard_to_repeat=True)
    assert Mandate.of(Policy[object](missing=Remedy.REQUEUE)) == Mandate()
    assert Mandate.of(Policy[object](), [Remedy.REQUEUE, Remedy.COMPENSATE]) == Mandate()
