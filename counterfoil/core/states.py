"""The states of an operation and which of them are final.

What may follow what is in `transitions`; this module decides nothing.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class State(StrEnum):
    """Where an operation stands. The value is what the ledger, the topics and the screens show."""

    QUEUED = "queued"  #: waits for a worker
    RUNNING = "running"  #: an attempt is admitted and has no saved outcome
    RETRY_WAIT = "retry_wait"  #: waits for its due time, then for a worker
    AWAITING_CONFIRMATION = "awaiting_confirmation"  #: it may have been applied: a probe, a late answer or a person decides
    SUCCEEDED = "succeeded"  #: a receipt is saved; final where nobody will ask the sink
    CONFIRMED = "confirmed"  #: the effect is proved
    QUARANTINED = "quarantined"  #: certainly not applied; a person must act
    MANUAL_REVIEW = "manual_review"  #: a person must decide
    COMPENSATING = "compensating"  #: a linked operation undoes the effect
    COMPENSATED = "compensated"  #: it was undone
    NOT_APPLICABLE = "not_applicable"  #: it will not run: cancelled, superseded or overtaken


#: No exits. `succeeded` is final too where `proof` is None or the sample leaves it out: then it has `closed_at` in the ledger.
FINAL: Final = frozenset({State.CONFIRMED, State.COMPENSATED, State.NOT_APPLICABLE})
#: Everything that can still move; each such operation has a due time, except a `succeeded` one that is closed.
UNFINISHED: Final = frozenset(State) - FINAL
#: Waiting for a worker to admit it.
WAITING: Final = frozenset({State.QUEUED, State.RETRY_WAIT})
#: Waiting for a person.
EXCEPTIONS: Final = frozenset({State.QUARANTINED, State.MANUAL_REVIEW})

#: What the due time of an operation means in each state that can still move: none of them is forgotten (D14).
DUE: Final = {
    State.QUEUED: "its command record is sent again, or its record's hold is over",
    State.RUNNING: "the worker's lease or the attempt's run time is over",
    State.RETRY_WAIT: "its command record is sent again, or its record's hold is over",
    State.AWAITING_CONFIRMATION: "the next probe; without a probe: sent again under its key, or a person's turn",
    State.SUCCEEDED: "the next probe; none where it is final",
    State.QUARANTINED: "the promised review",
    State.MANUAL_REVIEW: "the promised review",
    State.COMPENSATING: "a look at the linked operation",
}
