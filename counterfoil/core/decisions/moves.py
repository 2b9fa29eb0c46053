"""What a decision is: a transition to write, evidence to keep, or a question answered. Plain data.

The ledger writes a `Move` in one conditional statement with its event; these records never say how.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from counterfoil.core.events import EventKind
from counterfoil.core.outcomes import AttemptOutcome
from counterfoil.core.states import State

if TYPE_CHECKING:
    from counterfoil.core.raised import Raised
    from counterfoil.core.reasons import Reason
    from counterfoil.core.records import Receipt

NOW: Final = timedelta(0)


# Plain slotted dataclasses, not `Value`: one is made for every operation on the hot path, and nobody declares them.
@dataclass(frozen=True, slots=True)
class Answered:
    """What an attempt came to, sorted by the worker. Any answer that nobody sorted is `UNCERTAIN`."""

    attempt: int
    outcome: AttemptOutcome
    reason: str  #: a code of `Reason`, or of the type's `Permanent`
    receipt: Receipt | None = None  #: with `DONE` only
    retry_after: timedelta | None = None  #: the sink's own wish, with `TEMPORARY` only
    revision: int | None = None  #: that the attempt ran; None: the current one
    raised: Raised | None = None  #: where the effect raised; decides nothing
    try_back: bool = False  #: with `TEMPORARY` only: its sink was known to be down, so it costs no try (D65)


@dataclass(frozen=True, slots=True)
class Move:
    """A transition to write: state, event, due time, and what becomes of tries and doubts."""

    to: State
    kind: EventKind
    reason: str
    outcome: AttemptOutcome | None  #: of the latest attempt afterwards
    wait: timedelta | None = None  #: due_at = now + wait; None: final, no due time and closed_at = now
    not_before_wait: bool = False  #: it must not be admitted before it is due (a retry's backoff)
    try_back: bool = False  #: the try that the attempt took is given back
    doubt: bool = False  #: the latest attempt joins the doubtful ones: since and key from it if there was none; unresolved
    doubt_over: bool = False  #: no attempt is doubtful any more: since and key empty, unresolved false
    cause: str | None = None  #: what the last answer said, where `reason` is the rule that made it count
    resolved: bool = False  #: a verdict or a person spoke about every attempt: doubtful ones (`doubt` too) are not unresolved
    granted: int = 0  #: tries that are added
    risk: bool = False  #: a person accepts that the next admission may double the effect
    new_key: bool = False  #: the idempotency key gets its next generation


@dataclass(frozen=True, slots=True)
class Kept:
    """Evidence only: an event, and no change of state, tries or outcome."""

    kind: EventKind
    reason: str
    applied: bool = False  #: that attempt reached the sink: it is doubtful from now on, also if it had been closed
    due_now: bool = False  #: the probe is due now


@dataclass(frozen=True, slots=True)
class Ask:
    """A cancel that is remembered (`cancel_asked`) and honoured at the next legal edge."""

    kind: EventKind
    reason: str
    due_now: bool  #: it waits for a worker: let the next step come now


@dataclass(frozen=True, slots=True)
class Refused:
    """A person's act that may not be done now; nothing is written but the act itself."""

    reason: Reason


@dataclass(frozen=True, slots=True)
class TooLate:
    """The effect exists or the operation is final: nothing to cancel, nothing is written."""


@dataclass(frozen=True, slots=True)
class First:
    """How an accepted operation begins."""

    state: State
    kind: EventKind
    reason: str
    wait: timedelta  #: due_at = now + wait
    tries_left: int
    command: bool  #: a command row goes to the outbox in the same transaction
