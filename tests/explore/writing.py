"""What the ledger's statements make of a row when a decision is saved: the pure counterpart of admit, write and tell."""

from __future__ import annotations

from typing import Final, NamedTuple

from counterfoil.core.decisions import Ask, Kept, Move
from counterfoil.core.outcomes import AttemptOutcome
from counterfoil.core.reasons import Reason
from counterfoil.core.states import FINAL, State
from tests.explore.world import Op


class Decision(NamedTuple):
    """What became of a question: the row afterwards; None: nothing is written."""

    op: Op | None
    moved: bool = False  #: a transition, so that whatever was read before is out of date
    applied: bool = False  #: a receipt that is only evidence
    claims: bool = False  #: it denies the effect


NOTHING: Final = Decision(None)
#: Reasons that say "no effect" of what is not applicable.
_DENYING: Final = frozenset({Reason.CANCELLED.value, Reason.SUPERSEDED.value})


def written(op: Op, decision: object, attempt: int = 0) -> Decision:
    """What the statements of the ledger make of a row."""
    if isinstance(decision, Move):
        return _moved(op, decision)
    if isinstance(decision, Ask):
        return NOTHING if op.cancel else Decision(op._replace(cancel=True))
    if isinstance(decision, Kept) and decision.applied:
        return Decision(_evidence(op, attempt, decision.reason == Reason.OLD_REVISION.value), applied=True)
    return NOTHING


def _moved(op: Op, move: Move) -> Decision:
    since, key, unresolved = op.since, op.key, op.unresolved
    if move.doubt:
        unresolved = True
        if since is None:
            since, key = op.admitted, (op.revision, 0)
    if move.doubt_over:
        since, key, unresolved = None, None, False
    if move.resolved:
        unresolved = False
    absent = move.reason in _DENYING or (move.reason == Reason.DECIDED.value and move.doubt_over)
    after = op._replace(
        state=move.to,
        outcome=move.outcome,
        since=since,
        key=key,
        unresolved=unresolved,
        tries=op.tries + move.try_back + move.granted,
        risk=op.risk or move.risk,
        closed=move.wait is None,
        receipt=op.receipt or (move.outcome is AttemptOutcome.DONE and move.wait is not None),
        denied=move.to is State.NOT_APPLICABLE and absent,
    )
    return Decision(after, moved=True)


def _evidence(op: Op, attempt: int, edited: bool) -> Op:
    """A receipt that is only evidence makes its attempt doubtful; an older one, or of an older revision, under its own key."""
    if op.state in FINAL:
        return op
    op = op._replace(receipt=True)
    if op.since is not None:
        return op
    older = attempt < op.attempt
    age = op.admitted if op.admitted is not None else 0
    return op._replace(since=age + older, key=(0 if older or edited else op.revision, 0))


def admitted(op: Op) -> Op:
    """After the statement that admits."""
    return op._replace(
        state=State.RUNNING,
        attempt=op.attempt + 1,
        tries=op.tries - 1,
        outcome=AttemptOutcome.OPEN,
        admitted=0,
        risk=False,
    )
