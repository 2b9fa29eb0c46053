"""What a raised or recorded outcome comes to, for the worker and for callers alike."""

from __future__ import annotations

from datetime import timedelta

import pytest

from counterfoil.core.errors import Outcome, Permanent, Temporary, Uncertain
from counterfoil.core.failures import Errors
from counterfoil.core.meaning import meaning
from counterfoil.core.outcomes import AttemptOutcome as O


class Rejected(Exception):
    pass


class Nameless(Permanent):
    """A subclass whose author forgot to call the base."""

    def __init__(self) -> None:
        pass


ERRORS = Errors(permanent=(Rejected,), codes=("card_declined",))


@pytest.mark.parametrize(
    ("outcome", "comes_to"),
    [
        (Temporary(), (O.TEMPORARY, "temporary_failure", None)),
        (Temporary(timedelta(minutes=3)), (O.TEMPORARY, "temporary_failure", timedelta(minutes=3))),
        (Permanent("card_declined"), (O.PERMANENT, "card_declined", None)),
        (Permanent("rejected"), (O.PERMANENT, "rejected", None)),
        (Permanent("4111-SECRET"), (O.PERMANENT, "permanent_failure", None)),
        (Nameless(), (O.PERMANENT, "permanent_failure", None)),
        (Uncertain(), (O.UNCERTAIN, "uncertain_answer", None)),
        (Outcome(), (O.UNCERTAIN, "uncertain_answer", None)),
    ],
)
def test_an_outcome_comes_to_a_closed_reason(outcome: Outcome, comes_to: tuple[O, str, timedelta | None]) -> None:
    """S12, S18: a code that the type does not declare, or no class of its errors gives, never becomes a label."""
    assert meaning(ERRORS, outcome) == comes_to
