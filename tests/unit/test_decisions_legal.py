"""Every decision on every standing: an edge of the table for its actor, or nothing. By enumeration."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta

import pytest

from counterfoil.core.decisions import (
    Answered,
    Grounds,
    Kept,
    Move,
    cancel,
    discard,
    lease_over,
    look_first,
    not_admissible,
    record_outcome,
    replay,
    send_again,
    set_aside,
    settle,
)
from counterfoil.core.outcomes import NOT_APPLIED, AttemptOutcome
from counterfoil.core.reasons import Reason
from counterfoil.core.standing import Rules, Standing
from counterfoil.core.states import FINAL, State
from counterfoil.core.transitions import Actor, is_edge
from tests.support.standings import KINDS, NOW, OUTSIDE, ZERO, after, standings

ANSWERS = (
    AttemptOutcome.DONE,
    AttemptOutcome.TEMPORARY,
    AttemptOutcome.PERMANENT,
    AttemptOutcome.NOT_SENT,
    AttemptOutcome.UNCERTAIN,
)
#: An edge that ends without an effect, so nothing may be doubtful on it.
WITHOUT_EFFECT = frozenset({State.QUARANTINED, State.NOT_APPLICABLE})
Decided = tuple[Actor, Standing, Move | Kept | None]


def _answered(standing: Standing, outcome: AttemptOutcome, *, stale: bool = False) -> Answered:
    return Answered(standing.attempt - stale, outcome, str(Reason.TIMEOUT))


def _settled(rules: Rules, standing: Standing) -> Iterator[Decided]:
    for outcome in ANSWERS:
        for sampled in (False, True):
            answered = _answered(standing, outcome)
            yield Actor.WORKER, standing, settle(rules, standing, answered, now=NOW, jitter=0.5, sampled=sampled)
    back = replace(_answered(standing, AttemptOutcome.TEMPORARY), try_back=True)
    yield Actor.WORKER, standing, settle(rules, standing, back, now=NOW, jitter=0.5, sampled=False)


def _recorded(rules: Rules, standing: Standing) -> Iterator[Decided]:
    for outcome in ANSWERS:
        decision = record_outcome(rules, standing, _answered(standing, outcome), sampled=True)
        yield Actor.CALLER, standing, decision
        yield Actor.CALLBACK, standing, decision


def _swept(rules: Rules, standing: Standing) -> Iterator[Decided]:
    for over in (False, True):
        yield Actor.DUE_SWEEPER, standing, lease_over(rules, standing, lease_over=over, now=NOW)
    yield Actor.DUE_SWEEPER, standing, send_again(rules, standing, now=NOW)
    for actor in (Actor.DUE_SWEEPER, Actor.WORKER):
        yield actor, standing, not_admissible(rules, standing, NOW, by=actor)
    for actor in (Actor.DUE_SWEEPER, Actor.WORKER, Actor.RELAY):
        yield actor, standing, set_aside(rules, standing, str(Reason.MESSAGE_TOO_LARGE))


def _cancelled(rules: Rules, standing: Standing) -> Iterator[Decided]:
    for actor in (Actor.CALLER, Actor.PERSON):
        decision = cancel(standing, by=actor)
        yield actor, standing, decision if isinstance(decision, Move) else None


def _acted(rules: Rules, standing: Standing) -> Iterator[Decided]:
    for grounds in (None, *Grounds):
        decision = replay(rules, standing, grounds, replays=0, now=NOW)
        yield Actor.PERSON, standing, decision if isinstance(decision, Move) else None
    for decision in (look_first(rules, standing), discard(standing)):
        yield Actor.PERSON, standing, decision if isinstance(decision, Move) else None


DECIDERS: dict[str, Callable[[Rules, Standing], Iterator[Decided]]] = {
    "settle": _settled,
    "record_outcome": _recorded,
    "sweeps": _swept,
    "cancel": _cancelled,
    "people": _acted,
}


def _moves(decider: str, kind: str) -> Iterator[tuple[Actor, Standing, Move]]:
    for standing in standings():
        for actor, asked, decision in DECIDERS[decider](KINDS[kind], standing):
            if isinstance(decision, Move):
                yield actor, asked, decision


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("decider", DECIDERS)
def test_every_move_is_legal_and_leaves_nothing_forgotten(decider: str, kind: str) -> None:
    """S3, S11, S22, D14: on every standing, whoever asks."""
    rules, seen = KINDS[kind], 0
    for actor, standing, move in _moves(decider, kind):
        seen += 1
        told = (actor, standing, move)
        now = after(standing, move)
        assert is_edge(standing.state, move.to, actor), told
        # S3: final states absorb, and a succeeded operation is the reconciler's.
        assert standing.state not in FINAL, told
        assert standing.state is not State.SUCCEEDED, told
        # S11: nothing is called failed or cancelled while an earlier attempt may have been applied.
        if move.to in WITHOUT_EFFECT:
            assert not now.doubtful, told
            assert not standing.doubtful_before, told
        # D14: due exactly where something can still follow.
        closed = move.to in FINAL or (move.to is State.SUCCEEDED and (move.wait is None))
        assert (move.wait is None) == closed, told
        assert move.wait is None or move.wait >= ZERO, told
        assert not move.not_before_wait or (move.to is State.RETRY_WAIT and move.wait is not None and move.wait > ZERO), told
        # S22: a try comes back only for an attempt that was never sent, or was no more than a look whether the sink is up again.
        assert move.try_back <= (move.outcome in {AttemptOutcome.NOT_SENT, AttemptOutcome.TEMPORARY}), told
        # Doubt is joined and ended consistently.
        assert not (move.doubt and move.doubt_over), told
        assert not (move.doubt and rules.in_ledger), told
        assert move.doubt <= (move.outcome is AttemptOutcome.UNCERTAIN), told
        if move.doubt:
            assert now.doubtful, told
            assert now.unresolved, told
        assert move.reason in set(Reason), told
    assert seen or (decider, kind) in {("record_outcome", "in the ledger")}


@pytest.mark.parametrize("kind", KINDS)
def test_an_answer_of_a_stale_attempt_changes_no_state(kind: str) -> None:
    """S9: it is kept, a receipt as evidence that its attempt reached the sink."""
    for standing in standings():
        for outcome in ANSWERS:
            answered = _answered(standing, outcome, stale=True)
            for kept in (
                settle(KINDS[kind], standing, answered, now=NOW, jitter=0.0, sampled=True),
                record_outcome(KINDS[kind], standing, answered, sampled=True),
            ):
                assert isinstance(kept, Kept), (standing, answered)
                assert kept.reason == Reason.STALE_ATTEMPT
                assert kept.applied <= (outcome is AttemptOutcome.DONE)


@pytest.mark.parametrize("state", [State.MANUAL_REVIEW, State.QUARANTINED, State.COMPENSATING, *sorted(FINAL), State.SUCCEEDED])
def test_where_a_person_or_a_verdict_decides_an_answer_is_evidence_only(state: State) -> None:
    """S9, S13: the latest attempt's receipt too; it makes a shown review out of date."""
    for standing in (one for one in standings() if one.state is state and one.attempt):
        for outcome in ANSWERS:
            kept = settle(OUTSIDE, standing, _answered(standing, outcome), now=NOW, jitter=0.0, sampled=True)
            assert isinstance(kept, Kept)
            undecided = state not in FINAL and state is not State.SUCCEEDED
            assert kept.applied == (undecided and outcome is AttemptOutcome.DONE)


def test_nothing_is_sent_again_that_may_double_the_effect() -> None:
    """S10: what `not_admissible` lets through is harmless, or a person accepted the risk, and no cancel was asked for."""
    let_through = 0
    for kind, rules in KINDS.items():
        for standing in standings():
            waits = standing.state in {State.QUEUED, State.RETRY_WAIT}
            if waits and not_admissible(rules, standing, NOW) is None:
                let_through += 1
                told = (kind, standing)
                assert standing.tries_left > 0, told
                assert not standing.cancel_asked, told
                assert rules.harmless(standing, NOW) or standing.accepted_risk, told
    assert let_through > 100


def test_a_worker_and_a_sweeper_agree_on_everything_but_closing() -> None:
    """S3: the sweeper sends a cancelled operation's record once more, and the worker closes it."""
    for rules in KINDS.values():
        for standing in standings():
            worker, sweeper = (not_admissible(rules, standing, NOW, by=by) for by in (Actor.WORKER, Actor.DUE_SWEEPER))
            if worker != sweeper:
                assert worker is not None
                assert worker.to is State.NOT_APPLICABLE
                assert sweeper is None


def test_a_receipt_of_an_older_revision_never_counts_late() -> None:
    """H3, S9: an edit made the payload another one; its old receipt is evidence."""
    for standing in (one for one in standings() if one.state is not State.RUNNING and one.attempt):
        answered = replace(_answered(standing, AttemptOutcome.DONE), revision=standing.revision - 1)
        kept = settle(OUTSIDE, standing, answered, now=NOW, jitter=0.0, sampled=True)
        assert isinstance(kept, Kept)
        assert kept.reason == Reason.OLD_REVISION


def test_a_receipt_without_a_revision_counts_only_where_the_latest_attempt_ran_the_current_one() -> None:
    """H3, S9: a callback does not say which payload it answers; after an edit no attempt has run the new one yet."""
    for standing in (one for one in standings() if one.state is not State.RUNNING and one.attempt):
        for revision in (1, 2):
            edited = replace(standing, revision=revision)
            answered = _answered(edited, AttemptOutcome.DONE)
            decision = record_outcome(OUTSIDE, edited, answered, sampled=True)
            if revision > 1 and standing.outcome in NOT_APPLIED:
                assert isinstance(decision, Kept)
                assert decision.reason == Reason.OLD_REVISION
            else:
                assert decision == record_outcome(OUTSIDE, edited, replace(answered, revision=revision), sampled=True)


def test_a_quarantined_operation_is_due_for_its_promised_review() -> None:
    """L1: what waits for a person is raised again after the time that the type promises."""
    rules = replace(OUTSIDE, review_within=timedelta(days=3))
    standing = next(one for one in standings() if one.state is State.RUNNING and one.attempt and not one.doubtful)
    move = settle(rules, standing, _answered(standing, AttemptOutcome.PERMANENT), now=NOW, jitter=0.0, sampled=True)
    assert isinstance(move, Move)
    assert (move.to, move.wait) == (State.QUARANTINED, timedelta(days=3))
