"""What callers are told about an operation and about what they asked for. Never holds a payload."""

from datetime import datetime
from enum import Enum

from counterfoil.core.records import OperationId, Receipt
from counterfoil.core.states import State
from counterfoil.core.value import Value

__all__ = ["Cancelled", "Recorded", "Status"]


class Cancelled(Enum):
    """What a cancel came to."""

    NOW = "now"  #: it is not_applicable
    ASKED = "asked"  #: running or doubtful: honoured at the next legal edge
    TOO_LATE = "too_late"  #: it has succeeded or is final


class Recorded(Enum):
    """What `record_outcome` did with an answer."""

    COUNTED = "counted"  #: it changed the state
    KEPT = "kept"  #: evidence only (a stale attempt; for DoneElsewhere all but a receipt)


class Status(Value):
    """One operation as it stands in the caller's own transaction."""

    operation_id: OperationId
    type: str
    state: State
    final: bool  #: also succeeded, where `proof` is None or `Confirm.share` leaves it out
    attempt: int  #: number of the latest; 0 before the first
    tries_left: int
    reason: str | None  #: of the last transition, a member of a closed list
    due_at: datetime | None  #: UTC; when something must happen next; None when final
    receipt: Receipt | None
