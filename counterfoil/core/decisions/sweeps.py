"""What happens to an operation that nobody answered for, or that may not be sent: the due sweeper's and the worker's decisions.

Never sends where an earlier attempt may have been applied and a repeat would be a second effect (S10); never calls such an
operation failed or cancelled (S11): it is looked up first.
"""

from __future__ import annotations

from datetime import datetime

from counterfoil.core.decisions.answers import doubted, may_be_resent
from counterfoil.core.decisions.moves import NOW, Ask, Move
from counterfoil.core.decisions.ordering import FREE, Turn
from counterfoil.core.events import EventKind
from counterfoil.core.order import Ordering
from counterfoil.core.outcomes import AttemptOutcome
from counterfoil.core.reasons import Reason
from counterfoil.core.standing import REVIEW_WITHIN, Rules, Standing
from counterfoil.core.states import WAITING, State
from counterfoil.core.transitions import Actor
from counterfoil.core.wanted import Wanted


def lease_over(rules: Rules, standing: Standing, *, lease_over: bool, now: datetime, jitter: float = 0.0) -> Move | None:
    """A running operation whose worker is gone (`lease_over`) or whose run time is up; None while it may still answer (L5).

    The try counts. In the ledger no commit means no effect; outside, it may have been applied.
    """
    if standing.state is not State.RUNNING:
        return None
    time_over = standing.attempt_until is not None and now >= standing.attempt_until
    if not lease_over and not time_over:
        return None
    reason = Reason.LEASE_OVER.value if lease_over else Reason.ATTEMPT_TIME_OVER.value
    if rules.in_ledger:
        return Move(State.RETRY_WAIT, EventKind.RETRY_SCHEDULED, reason, AttemptOutcome.TEMPORARY, NOW)
    return doubted(rules, standing, reason, now=now, jitter=jitter)


def send_again(rules: Rules, standing: Standing, *, now: datetime) -> Move | None:
    """An uncertain attempt of a type that nobody can ask, at a sink that keeps its key: the same bytes under the same key.

    Its backoff has passed while it awaited confirmation. None: a person's turn.
    """
    if standing.state is not State.AWAITING_CONFIRMATION or standing.outcome is not AttemptOutcome.UNCERTAIN:
        return None
    if not may_be_resent(rules, standing) or not rules.inside_horizon(standing, now):
        return None
    return Move(State.RETRY_WAIT, EventKind.RETRY_SCHEDULED, Reason.NO_PROBE_RESEND.value, standing.outcome, NOW)


def not_admissible(
    rules: Rules, standing: Standing, now: datetime, *, by: Actor = Actor.WORKER, turn: Turn = FREE
) -> Move | None:
    """Where a queued or retry_wait operation goes that must not be admitted; None: nothing here forbids its admission.

    Asked by the worker before it admits and by the due sweeper before it sends a record again. Closing is not the sweeper's:
    for a cancel without doubt, or a superseded one, it gets None, and the worker that receives the record closes. `turn` is what
    its entity says; an operation that merely waits for another one gets None too.
    """
    if standing.state not in WAITING:
        return None
    doubtful = standing.doubtful
    if standing.cancel_asked:
        if doubtful:
            return _look_first(rules, standing, Reason.CANCEL_ASKED)
        return cancelled(standing) if by is Actor.WORKER else None
    if turn.overtakes(standing):
        if doubtful or rules.ordering is Ordering.STRICT:
            return _look_first(rules, standing, Reason.LATER_SENT)
        return cancelled(standing, Reason.SUPERSEDED) if by is Actor.WORKER else None
    if standing.tries_left <= 0:
        return set_aside(rules, standing, Reason.TRIES_USED_UP.value)
    if doubtful and not standing.accepted_risk and not rules.harmless(standing, now):
        return _look_first(rules, standing, Reason.PROBE_FIRST)
    return None


def set_aside(rules: Rules | None, standing: Standing, reason: str) -> Move | None:
    """A queued or retry_wait operation that cannot go on: undecodable, never sendable, no tries, held past its deadline.

    Quarantined with its reason, unless an earlier attempt may have been applied: then looked up first. None in any other
    state, and where the type is not installed (`rules` None) and somebody must look first.
    """
    if standing.state not in WAITING:
        return None
    if standing.doubtful:
        return None if rules is None else _look_first(rules, standing, Reason.PROBE_FIRST, cause=reason)
    review = REVIEW_WITHIN if rules is None else rules.review_within
    return Move(State.QUARANTINED, EventKind.QUARANTINED, reason, standing.outcome, review)


def no_longer_wanted(standing: Standing, wanted: Wanted) -> Move | Ask | None:
    """What the type's own word that nobody wants it means before a send; None where it is wanted, or waits for no send.

    Where an earlier attempt may have been applied it is remembered like a cancel: looked up, and never sent again.
    """
    if wanted is Wanted.YES or standing.state not in WAITING:
        return None
    if standing.doubtful:
        return None if standing.cancel_asked else Ask(EventKind.CANCEL_ASKED, Reason.CANCEL_ASKED.value, due_now=True)
    return cancelled(standing, Reason.SUPERSEDED if wanted is Wanted.SUPERSEDED else Reason.CANCELLED)


def cancelled(standing: Standing, reason: Reason = Reason.CANCELLED) -> Move:
    """No attempt may have reached the sink: the cancel is honoured now."""
    return Move(State.NOT_APPLICABLE, EventKind.NOT_APPLICABLE, reason.value, standing.outcome)


def _look_first(rules: Rules, standing: Standing, reason: Reason, cause: str | None = None) -> Move:
    wait = rules.window if rules.has_probe else NOW
    kind = EventKind.AWAITING_CONFIRMATION
    return Move(State.AWAITING_CONFIRMATION, kind, reason.value, standing.outcome, wait, cause=cause)
