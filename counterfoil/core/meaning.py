"""What an outcome that was raised or recorded comes to: how the attempt ended, its reason, and the wait that the sink asked for.

By class and closed codes alone, for the worker and for callers alike; no text is ever read. What proves nothing is uncertain.
"""

from __future__ import annotations

from datetime import timedelta
from typing import NamedTuple

from counterfoil.core.errors import Outcome, Permanent, Temporary
from counterfoil.core.failures import Errors
from counterfoil.core.outcomes import AttemptOutcome
from counterfoil.core.reasons import Reason

__all__ = ["Meaning", "meaning"]


class Meaning(NamedTuple):
    """What an outcome says about its attempt."""

    outcome: AttemptOutcome
    reason: str  #: a code of `Reason`, or one that the type declares
    retry_after: timedelta | None = None  #: the sink's own wish


def meaning(errors: Errors, outcome: Outcome) -> Meaning:
    """What an outcome comes to under a type's sorted errors. A subclass that never called its base lacks the fields."""
    if isinstance(outcome, Temporary):
        wish = getattr(outcome, "retry_after", None)
        retry_after = wish if isinstance(wish, timedelta) else None
        return Meaning(AttemptOutcome.TEMPORARY, Reason.TEMPORARY_FAILURE.value, retry_after)
    if isinstance(outcome, Permanent):
        code = getattr(outcome, "code", None)
        known = isinstance(code, str) and errors.knows(code)
        return Meaning(AttemptOutcome.PERMANENT, code if known and code else Reason.PERMANENT_FAILURE.value)
    return Meaning(AttemptOutcome.UNCERTAIN, Reason.UNCERTAIN_ANSWER.value)
