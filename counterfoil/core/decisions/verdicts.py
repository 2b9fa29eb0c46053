"""What follows a verdict, the end of a linked operation, or that nobody can ask the sink: the reconciler's decisions.

Never acts on an ambiguous answer (S14), never on one that is older than the operation's last transition (S9), and never calls
an effect absent while a request may still land (S11).
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from counterfoil.core.decisions.moves import NOW, Move
from counterfoil.core.decisions.sweeps import send_again
from counterfoil.core.events import EventKind
from counterfoil.core.outcomes import DOUBTFUL, AttemptOutcome
from counterfoil.core.reasons import Reason
from counterfoil.core.standing import Rules, Standing
from counterfoil.core.states import State
from counterfoil.core.verdicts import Mandate, Seen, Verdict

_PROBED: Final = frozenset({State.AWAITING_CONFIRMATION, State.SUCCEEDED})


def is_missing(rules: Rules, absences: Sequence[datetime], *, ended: datetime | None, probes: int) -> bool:
    """Whether agreeing "absent" answers, asked at `absences`, are as many as the type wants past the absence wait (S14).

    `ended` is the end of the last attempt's maximum run time; for what is done elsewhere the recorded outcome, else when it was
    due; None: nothing was ever sent. An answer from before counts no more once another attempt was admitted.
    """
    if ended is None:
        return len(absences) >= probes
    return sum(past_wait(rules, ended, asked_at) for asked_at in absences) >= probes


def past_wait(rules: Rules, ended: datetime | None, asked_at: datetime) -> bool:
    """Whether a probe asked then could see whatever the attempts may still have done."""
    return ended is None or asked_at >= ended + rules.absence_wait


def remedy(rules: Rules, mandate: Mandate, standing: Standing, seen: Seen, *, now: datetime) -> Move | None:
    """What the reconciler writes for a verdict; None: the verdict is void, or says too little yet.

    Written before anything is done about it. A requeue is made by the workers, and admission checks it once more.
    """
    if seen.sequence != standing.sequence or standing.state not in _PROBED:
        return None
    if seen.verdict is Verdict.CORRECT:
        return _confirmed(rules, standing)
    if seen.verdict is Verdict.NOT_APPLICABLE:
        return Move(State.NOT_APPLICABLE, EventKind.NOT_APPLICABLE, Reason.OVERTAKEN.value, standing.outcome)
    if seen.verdict is Verdict.AMBIGUOUS:
        return to_review(rules, standing, Reason.AMBIGUOUS)
    if not past_wait(rules, standing.attempt_until, seen.asked_at):
        return None
    if seen.verdict is Verdict.DIVERGENT:
        if mandate.compensate:
            return compensating(standing, Reason.DIVERGENT)
        return to_review(rules, standing, Reason.DIVERGENT)
    return _missing(rules, mandate, standing, seen, now)


def without_probe(rules: Rules, standing: Standing, *, now: datetime) -> Move | None:
    """What awaits confirmation at a sink that nobody can ask: a person's turn, unless it may be sent again under its key."""
    if standing.state is not State.AWAITING_CONFIRMATION or rules.has_probe:
        return None
    if send_again(rules, standing, now=now) is not None:
        return None
    return to_review(rules, standing, Reason.NO_PROBE)


def linked_ended(rules: Rules, standing: Standing, *, with_effect: bool) -> Move | None:
    """What the end of a compensation means; `with_effect`: confirmed, or succeeded where that is final (S20)."""
    if standing.state is not State.COMPENSATING:
        return None
    if with_effect:
        return Move(State.COMPENSATED, EventKind.COMPENSATED, Reason.COMPENSATION.value, standing.outcome)
    return to_review(rules, standing, Reason.COMPENSATION)


def to_review(rules: Rules, standing: Standing, reason: Reason) -> Move:
    """Handed to a person; whoever may do that has been asked before."""
    return Move(State.MANUAL_REVIEW, EventKind.MANUAL_REVIEW, reason.value, standing.outcome, rules.review_within)


def compensating(standing: Standing, reason: Reason) -> Move:
    """A linked operation undoes what was found; it is enqueued in the same transaction and looked at when this is due."""
    return Move(State.COMPENSATING, EventKind.COMPENSATING, reason.value, standing.outcome, NOW)


def presumed_absent(standing: Standing) -> AttemptOutcome | None:
    """The latest attempt's outcome once it is sent again; what certainly did not reach the sink stays what it was."""
    return AttemptOutcome.PRESUMED_ABSENT if may_exist(standing) else standing.outcome


def may_exist(standing: Standing) -> bool:
    """Whether the latest attempt may have reached the sink; a saved receipt says that it did."""
    return standing.outcome in DOUBTFUL or standing.outcome is AttemptOutcome.DONE


def _confirmed(rules: Rules, standing: Standing) -> Move:
    found = AttemptOutcome.APPLIED if standing.outcome in DOUBTFUL else standing.outcome
    return Move(State.CONFIRMED, EventKind.CONFIRMED, Reason.CORRECT.value, found)


def _missing(rules: Rules, mandate: Mandate, standing: Standing, seen: Seen, now: datetime) -> Move:
    """Proved absent past every wait. Closing comes before sending: what nobody wants any more is never sent again (T11)."""
    if seen.receipt or standing.state is State.SUCCEEDED or standing.outcome is AttemptOutcome.DONE:
        return to_review(rules, standing, Reason.MISSING)
    if standing.cancel_asked or seen.newer:
        reason = Reason.CANCELLED if standing.cancel_asked else Reason.SUPERSEDED
        return _closing(standing, State.NOT_APPLICABLE, EventKind.NOT_APPLICABLE, reason)
    if standing.outcome is AttemptOutcome.PERMANENT:
        return _closing(standing, State.QUARANTINED, EventKind.QUARANTINED, Reason.PERMANENT_FAILURE, rules.review_within)
    if standing.tries_left <= 0:
        return _closing(standing, State.QUARANTINED, EventKind.QUARANTINED, Reason.TRIES_USED_UP, rules.review_within)
    by_itself = mandate.requeue and not (rules.money or mandate.hard_to_repeat or seen.passed)
    if not by_itself or not rules.harmless(standing, now):
        return to_review(rules, standing, Reason.MISSING)
    return Move(State.RETRY_WAIT, EventKind.REQUEUED, Reason.MISSING.value, presumed_absent(standing), NOW, resolved=True)


def _closing(standing: Standing, to: State, kind: EventKind, reason: Reason, wait: timedelta | None = None) -> Move:
    """An end, or a quarantine, with every attempt closed: absent to a probe after the last one."""
    outcome = AttemptOutcome.CLOSED if standing.outcome in DOUBTFUL else standing.outcome
    return Move(to, kind, reason.value, outcome, wait, doubt_over=True, cause=Reason.MISSING.value)
