"""What a caller's own acts mean: how an operation begins, whether it will be probed, and what a cancel can still do.

Never undoes an effect, and never calls something cancelled that may have been applied (S11).
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final
from uuid import UUID

from counterfoil.core.decisions.moves import NOW, Ask, First, Move, TooLate
from counterfoil.core.decisions.sweeps import cancelled
from counterfoil.core.events import EventKind
from counterfoil.core.reasons import Reason
from counterfoil.core.standing import Rules, Standing
from counterfoil.core.states import WAITING, State
from counterfoil.core.transitions import Actor

_BITS: Final = 32
_MASK: Final = (1 << _BITS) - 1


def first_due(rules: Rules, *, resend_after: timedelta, not_before: timedelta | None = None) -> First:
    """The facts for enqueue, the same for every operation of one call; `not_before` is how long from now, None: at once.

    The due time of a queued operation is when its command record is sent again if no worker was heard of.
    """
    if rules.done_elsewhere:
        within = rules.outcome_within if rules.outcome_within is not None else NOW
        return First(State.AWAITING_CONFIRMATION, EventKind.ACCEPTED, Reason.ACCEPTED.value, within, 0, command=False)
    wait = resend_after if not_before is None else max(not_before, NOW)
    return First(State.QUEUED, EventKind.ACCEPTED, Reason.ACCEPTED.value, wait, rules.max_tries, command=True)


def is_sampled(operation_id: UUID, share: float) -> bool:
    """Whether a succeeded operation is probed: decided by its id alone, so that every process says the same."""
    return (operation_id.int & _MASK) < share * (1 << _BITS)


def cancel(standing: Standing, *, by: Actor = Actor.CALLER) -> Move | Ask | TooLate:
    """Cancelled now, asked for, or too late. Only a person's cancel takes an operation out of quarantine (S13)."""
    state = standing.state
    leaves_quarantine = state is State.QUARANTINED and by is Actor.PERSON
    if (state in WAITING or leaves_quarantine) and not standing.doubtful:
        return cancelled(standing)
    if state in _REMEMBERED:
        return Ask(EventKind.CANCEL_ASKED, Reason.CANCEL_ASKED.value, due_now=state in WAITING)
    return TooLate()


#: States in which a cancel is remembered: the effect may still come to be, or a person will decide about it.
_REMEMBERED: Final = WAITING | {State.RUNNING, State.AWAITING_CONFIRMATION, State.MANUAL_REVIEW, State.QUARANTINED}
