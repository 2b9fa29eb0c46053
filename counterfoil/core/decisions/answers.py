"""What an attempt's answer changes, in time or late (S9, S11, S22).

Called for every operation on the hot path. Never looks at who holds a lease: the attempt number is the fence. Never retries
what nobody sorted: that is uncertain, and looked up first.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import lru_cache
from typing import Final

from counterfoil.core.backoff import delay
from counterfoil.core.decisions.moves import NOW, Answered, Kept, Move
from counterfoil.core.events import EventKind
from counterfoil.core.outcomes import NOT_APPLIED, AttemptOutcome
from counterfoil.core.reasons import Reason
from counterfoil.core.standing import Rules, Standing
from counterfoil.core.states import FINAL, WAITING, State

#: A sink's own Retry-After is obeyed up to here, or up to the type's cap where that is longer.
LONGEST_RETRY_AFTER: Final = timedelta(hours=1)

_CERTAIN: Final = frozenset({AttemptOutcome.NOT_SENT, AttemptOutcome.TEMPORARY, AttemptOutcome.PERMANENT})
#: A late certain answer counts only where nothing certain is known of the attempt.
_OPEN_TO_ANSWERS: Final = frozenset({AttemptOutcome.OPEN, AttemptOutcome.UNCERTAIN, AttemptOutcome.PRESUMED_ABSENT})
#: Reasons that say "it may have been applied", which is never so in the ledger.
_DOUBTS: Final = frozenset(
    {Reason.UNCLASSIFIED_EXCEPTION, Reason.UNCERTAIN_ANSWER, Reason.TIMEOUT, Reason.CONNECTION_LOST},
)
_OPEN_TO_RECEIPTS: Final = WAITING | {State.AWAITING_CONFIRMATION}


def settle(rules: Rules, standing: Standing, answered: Answered, *, now: datetime, jitter: float, sampled: bool) -> Move | Kept:
    """What the worker writes for an answer of the effect; `sampled` says whether a succeeded operation will be probed.

    For an effect in the ledger, `Kept` means that the attempt is lost: its rows must be rolled back with the transaction.
    """
    state, outcome = standing.state, answered.outcome
    if answered.attempt != standing.attempt or standing.attempt == 0:
        return _kept(rules, standing, answered, Reason.STALE_ATTEMPT)
    if state is State.RUNNING:
        if outcome is AttemptOutcome.DONE:
            return _succeeded(rules, standing, Reason.RECEIPT, sampled)
        return _not_done(rules, standing, answered, now, jitter)
    if outcome is AttemptOutcome.DONE:
        return _late_receipt(rules, standing, answered, sampled)
    late_answer_counts = state is State.AWAITING_CONFIRMATION and standing.outcome in _OPEN_TO_ANSWERS and not rules.in_ledger
    if outcome in _CERTAIN and late_answer_counts:
        return _not_done(rules, standing, answered, now, jitter)
    return _kept(rules, standing, answered, Reason.LATE_ANSWER)


def record_outcome(rules: Rules, standing: Standing, answered: Answered, *, sampled: bool) -> Move | Kept:
    """What a caller's or a callback's word changes: a receipt may count, anything else makes the probe due and is kept.

    For `DoneElsewhere` the attempt is 0. A receipt that comes while a worker still runs the attempt is kept: the worker's own
    answer follows.
    """
    never_sent = standing.attempt == 0 and not rules.done_elsewhere
    if answered.attempt != standing.attempt or never_sent:
        return _kept(rules, standing, answered, Reason.STALE_ATTEMPT)
    if answered.outcome is AttemptOutcome.DONE:
        return _late_receipt(rules, standing, answered, sampled)
    awaited = standing.state is State.AWAITING_CONFIRMATION
    return Kept(EventKind.RECORDED if rules.done_elsewhere else EventKind.ANSWER_KEPT, answered.reason, due_now=awaited)


def _late_receipt(rules: Rules, standing: Standing, answered: Answered, sampled: bool) -> Move | Kept:
    """A receipt of the latest attempt, when no worker runs it any more."""
    if _of_old_revision(standing, answered):
        return _kept(rules, standing, answered, Reason.OLD_REVISION)
    if standing.state not in _OPEN_TO_RECEIPTS or rules.in_ledger:
        return _kept(rules, standing, answered, Reason.LATE_ANSWER)
    return _succeeded(rules, standing, Reason.OUTCOME_RECORDED if rules.done_elsewhere else Reason.RECEIPT, sampled)


def _of_old_revision(standing: Standing, answered: Answered) -> bool:
    """Whether the receipt is of a payload that was edited since.

    A sink's callback does not say which revision it answers. An edit needs attempts that certainly were not applied, and the
    next admission opens another one: until then the latest attempt ran an older revision.
    """
    if answered.revision is None:
        return standing.revision > 1 and standing.outcome in NOT_APPLIED
    return answered.revision != standing.revision


def _succeeded(rules: Rules, standing: Standing, reason: Reason, sampled: bool) -> Move:
    """A receipt is saved: confirmed where it is the evidence, else succeeded, and final unless somebody will ask the sink."""
    if rules.in_ledger:
        reason = Reason.IN_LEDGER_COMMIT
    to = State.CONFIRMED if rules.receipt_confirms else State.SUCCEEDED
    asked = sampled and rules.has_probe and not rules.receipt_confirms
    return _receipt_move(to, reason, rules.window if asked else None, _settles_all(rules, standing))


@lru_cache(maxsize=256)  # the plain success is the same value for every operation of a type
def _receipt_move(to: State, reason: Reason, wait: timedelta | None, doubt_over: bool) -> Move:
    return Move(to, EventKind.RESULT_SAVED, reason.value, AttemptOutcome.DONE, wait, doubt_over=doubt_over)


def _settles_all(rules: Rules, standing: Standing) -> bool:
    """Whether a receipt of the latest attempt also ends the doubt about the earlier ones.

    Under one key the sink gives all of them one effect, and a version guard refuses the others. After a risk that a person
    accepted an earlier request may still land: its doubt stays, and with it the wait for the entity.
    """
    if standing.doubtful_since is None:
        return False
    return not standing.doubtful_before or rules.version_guard or rules.same_key(standing)


def _not_done(rules: Rules, standing: Standing, answered: Answered, now: datetime, jitter: float) -> Move:
    """Any answer but a receipt, of the attempt that counts."""
    outcome, reason = answered.outcome, answered.reason
    if rules.in_ledger and outcome not in _CERTAIN:
        outcome = AttemptOutcome.TEMPORARY  # what it wrote was rolled back: never uncertain
        reason = Reason.EXCEPTION_ROLLED_BACK.value if reason in _DOUBTS else reason
    if outcome not in _CERTAIN:
        return doubted(rules, standing, reason, now=now, jitter=jitter)
    earlier = standing.doubtful_before
    over = standing.doubtful_since is not None and not earlier
    if outcome is AttemptOutcome.NOT_SENT:
        return Move(State.RETRY_WAIT, EventKind.RETRY_SCHEDULED, reason, outcome, NOW, try_back=True, doubt_over=over)
    if outcome is AttemptOutcome.TEMPORARY and (standing.tries_left > 0 or answered.try_back):
        wait = _backoff(rules, standing, answered.retry_after, jitter)
        back = answered.try_back
        return Move(State.RETRY_WAIT, EventKind.RETRY_SCHEDULED, reason, outcome, wait, wait > NOW, back, doubt_over=over)
    if earlier:  # the sink may show an effect of the earlier attempt: look before anybody calls it failed (S11)
        wait = rules.window if rules.has_probe else NOW
        kind = EventKind.AWAITING_CONFIRMATION
        return Move(State.AWAITING_CONFIRMATION, kind, Reason.PROBE_FIRST.value, outcome, wait, cause=reason)
    cause = None
    if outcome is AttemptOutcome.TEMPORARY:
        cause, reason = reason, Reason.TRIES_USED_UP.value
    return Move(State.QUARANTINED, EventKind.QUARANTINED, reason, outcome, rules.review_within, doubt_over=over, cause=cause)


def doubted(rules: Rules, standing: Standing, reason: str, *, now: datetime, jitter: float) -> Move:
    """A running attempt may have been applied: probed after the window, or sent again after a backoff, or a person's at once."""
    wait = NOW
    if rules.has_probe:
        wait = rules.window
    elif may_be_resent(rules, standing):
        backoff = _backoff(rules, standing, None, jitter)
        wait = backoff if rules.key_outlasts(standing, now + backoff) else NOW
    kind = EventKind.AWAITING_CONFIRMATION
    return Move(State.AWAITING_CONFIRMATION, kind, reason, AttemptOutcome.UNCERTAIN, wait, doubt=True)


def may_be_resent(rules: Rules, standing: Standing) -> bool:
    """Whether an uncertain attempt of a type without a probe may be repeated under its key, the horizon apart."""
    return rules.resendable and standing.tries_left > 0 and not standing.cancel_asked


def _backoff(rules: Rules, standing: Standing, retry_after: timedelta | None, jitter: float) -> timedelta:
    """The wait before the next try. The jitter comes on top of a Retry-After, or all that got one would return at once (D65)."""
    if standing.cancel_asked:
        return NOW  # the next legal edge is the cancel's
    tries = rules.max_tries - standing.tries_left
    wait = timedelta(seconds=delay(tries, rules.first.total_seconds(), rules.cap.total_seconds(), jitter))
    if retry_after is not None:
        wait += min(max(retry_after, NOW), max(rules.cap, LONGEST_RETRY_AFTER))
    return wait


def _kept(rules: Rules, standing: Standing, answered: Answered, reason: Reason) -> Kept:
    """Evidence only. A receipt also says that its attempt reached the sink, where anything can still follow from that."""
    if answered.outcome is not AttemptOutcome.DONE:
        return Kept(EventKind.ANSWER_KEPT, reason.value)
    undecided = standing.state not in FINAL and standing.state is not State.SUCCEEDED
    return Kept(EventKind.RECEIPT_KEPT, reason.value, applied=undecided and not rules.in_ledger and answered.attempt > 0)
