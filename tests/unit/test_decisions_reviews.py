"""What a person may decide in review: on evidence that is not out of date, and never against what may still land."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import product

import pytest

from counterfoil.core.decisions import Move, not_admissible, reviews
from counterfoil.core.decisions.admission import may_admit
from counterfoil.core.decisions.moves import Refused
from counterfoil.core.outcomes import AttemptOutcome
from counterfoil.core.reasons import Reason
from counterfoil.core.standing import Standing
from counterfoil.core.states import State
from counterfoil.core.transitions import Actor, is_edge
from counterfoil.core.verdicts import Seen, Verdict
from tests.support.standings import KINDS, NOW, OUTSIDE, RUNNING, SECOND, admitted, after, standings

ENDED = RUNNING.attempt_until
assert ENDED is not None
PAST = ENDED + OUTSIDE.absence_wait
#: Each act on what a person was shown.
ACTS: dict[str, Callable[[Standing, Seen], Move | Refused]] = {
    "confirm": reviews.confirm,
    "requeue": reviews.requeue,
    "compensate": partial(reviews.compensate, OUTSIDE),
    "close": partial(reviews.close, OUTSIDE),
}
REVIEWED = replace(
    RUNNING,
    state=State.MANUAL_REVIEW,
    outcome=AttemptOutcome.UNCERTAIN,
    doubtful_since=NOW - SECOND,
    doubtful_key=(1, 0),
    unresolved=True,
)


@pytest.mark.parametrize("act", ACTS)
def test_every_act_is_a_row_of_the_table_or_refused(act: str) -> None:
    """S3, S13: only in review, only on the sequence that was shown."""
    allowed = 0
    for standing, verdict in product(standings(), Verdict):
        decision = ACTS[act](standing, Seen(verdict, standing.sequence, PAST))
        if isinstance(decision, Move):
            allowed += 1
            assert standing.state is State.MANUAL_REVIEW
            assert is_edge(standing.state, decision.to, Actor.PERSON)
        elif standing.state is not State.MANUAL_REVIEW:
            assert decision.reason is Reason.WRONG_STATE
        stale = ACTS[act](standing, Seen(verdict, standing.sequence - 1, PAST))
        assert isinstance(stale, Refused)
    assert allowed > 100


@pytest.mark.parametrize("act", ["compensate", "close"])
def test_nothing_is_closed_or_compensated_inside_the_absence_wait(act: str) -> None:
    """S11, T8: the request may still land behind the person's back."""
    for verdict in Verdict:
        decision = ACTS[act](REVIEWED, Seen(verdict, REVIEWED.sequence, PAST - SECOND))
        assert decision == Refused(Reason.INSIDE_WAIT)


@pytest.mark.parametrize(
    ("act", "verdict"),
    [("confirm", Verdict.MISSING), ("compensate", Verdict.MISSING), ("close", Verdict.CORRECT)],
)
def test_no_act_contradicts_the_newest_evidence(act: str, verdict: Verdict) -> None:
    """S2, S14."""
    assert ACTS[act](REVIEWED, Seen(verdict, REVIEWED.sequence, PAST)) == Refused(Reason.EVIDENCE_AGAINST)


@pytest.mark.parametrize("kind", KINDS)
def test_a_requeue_is_admitted_once_at_the_persons_risk_and_has_a_try(kind: str) -> None:
    """S10, S22, T3: also at a sink that promises nothing, also when every try was used."""
    for tries in (0, 1, 5):
        move = reviews.requeue(replace(REVIEWED, tries_left=tries), Seen(Verdict.AMBIGUOUS, REVIEWED.sequence, NOW))
        assert isinstance(move, Move)
        waiting = after(replace(REVIEWED, tries_left=tries), move)
        assert waiting.tries_left == max(tries, 1)
        assert not waiting.unresolved
        assert waiting.doubtful
        assert may_admit(KINDS[kind], waiting, NOW, revision=1)
        assert not_admissible(KINDS[kind], waiting, NOW) is None
        assert not admitted(waiting, NOW).accepted_risk


def test_what_the_head_of_a_strict_entity_has_passed_is_never_requeued() -> None:
    """S7, T15."""
    decision = reviews.requeue(REVIEWED, Seen(Verdict.MISSING, REVIEWED.sequence, PAST, passed=True))
    assert decision == Refused(Reason.ENTITY_MOVED_ON)


def test_closing_what_is_absent_ends_every_doubt() -> None:
    """S11."""
    move = reviews.close(OUTSIDE, REVIEWED, Seen(Verdict.MISSING, REVIEWED.sequence, PAST))
    assert isinstance(move, Move)
    assert not after(REVIEWED, move).doubtful


def test_a_person_takes_what_awaits_confirmation_and_nothing_else() -> None:
    """S3."""
    for standing in standings():
        decision = reviews.take(OUTSIDE, standing)
        assert isinstance(decision, Move) == (standing.state is State.AWAITING_CONFIRMATION)
