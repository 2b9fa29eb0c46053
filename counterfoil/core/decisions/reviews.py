"""What a person may decide about an operation in review, and what taking it for decision means.

Who the person is, the role, the reason and the evidence shown are the act's. Never closes or compensates while a request may
still land (S11); what may double an effect is allowed only as a risk that the next admission uses up (S10).
"""

from __future__ import annotations

from counterfoil.core.decisions.moves import NOW, Move, Refused
from counterfoil.core.decisions.verdicts import compensating, may_exist, past_wait, presumed_absent, to_review
from counterfoil.core.events import EventKind
from counterfoil.core.outcomes import DOUBTFUL, AttemptOutcome
from counterfoil.core.reasons import Reason
from counterfoil.core.standing import Rules, Standing
from counterfoil.core.states import State
from counterfoil.core.verdicts import Seen, Verdict


def take(rules: Rules, standing: Standing) -> Move | Refused:
    """A person takes what awaits confirmation for decision; nothing is sent or closed by it."""
    if standing.state is not State.AWAITING_CONFIRMATION:
        return Refused(Reason.WRONG_STATE)
    return to_review(rules, standing, Reason.DECIDED)


def confirm(standing: Standing, seen: Seen) -> Move | Refused:
    """The effect is there, says a person: on the newest evidence, and never against a verdict that nothing is."""
    refused = _out_of_date(standing, seen)
    if refused is not None:
        return refused
    if seen.verdict is Verdict.MISSING:
        return Refused(Reason.EVIDENCE_AGAINST)
    outcome = AttemptOutcome.APPLIED if standing.outcome in DOUBTFUL else standing.outcome
    return Move(State.CONFIRMED, EventKind.CONFIRMED, Reason.DECIDED.value, outcome)


def requeue(standing: Standing, seen: Seen) -> Move | Refused:
    """It is sent once more, at the person's risk: the next admission uses it up, and has at least one try.

    Never for an operation that the head of its entity has passed: it would land behind what came after it (T15).
    """
    refused = _out_of_date(standing, seen)
    if refused is not None:
        return refused
    if seen.passed:
        return Refused(Reason.ENTITY_MOVED_ON)
    return Move(
        State.RETRY_WAIT,
        EventKind.REQUEUED,
        Reason.DECIDED.value,
        presumed_absent(standing),
        NOW,
        doubt=may_exist(standing),
        resolved=True,
        granted=max(0, 1 - standing.tries_left),
        risk=True,
    )


def compensate(rules: Rules, standing: Standing, seen: Seen) -> Move | Refused:
    """A linked operation undoes what was found; a compensation that failed is continued by the same act (S20)."""
    refused = _out_of_date(standing, seen) or _inside_wait(rules, standing, seen)
    if refused is not None:
        return refused
    if seen.verdict is Verdict.MISSING:
        return Refused(Reason.EVIDENCE_AGAINST)
    return compensating(standing, Reason.DECIDED)


def close(rules: Rules, standing: Standing, seen: Seen) -> Move | Refused:
    """It will not run any more; on a probe, or a written finding where there is none, that no request can outrun."""
    refused = _out_of_date(standing, seen) or _inside_wait(rules, standing, seen)
    if refused is not None:
        return refused
    if seen.verdict is Verdict.CORRECT:
        return Refused(Reason.EVIDENCE_AGAINST)
    absent = seen.verdict is Verdict.MISSING
    outcome = AttemptOutcome.CLOSED if absent and standing.outcome in DOUBTFUL else standing.outcome
    return Move(State.NOT_APPLICABLE, EventKind.NOT_APPLICABLE, Reason.DECIDED.value, outcome, doubt_over=absent)


def _out_of_date(standing: Standing, seen: Seen) -> Refused | None:
    if standing.state is not State.MANUAL_REVIEW:
        return Refused(Reason.WRONG_STATE)
    return Refused(Reason.EVIDENCE_STALE) if seen.sequence != standing.sequence else None


def _inside_wait(rules: Rules, standing: Standing, seen: Seen) -> Refused | None:
    """A request of the last attempt may still land after what was seen (T8)."""
    return None if past_wait(rules, standing.attempt_until, seen.asked_at) else Refused(Reason.INSIDE_WAIT)
