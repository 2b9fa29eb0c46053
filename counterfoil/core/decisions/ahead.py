"""What comes next of an operation that awaits confirmation, if nothing else happens: for whoever is shown it.

The same rules as the sweepers', asked beforehand. It changes nothing, and promises nothing that a sweeper would not do.
"""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from counterfoil.core.decisions.sweeps import send_again
from counterfoil.core.standing import Rules, Standing
from counterfoil.core.states import State


class Ahead(StrEnum):
    """Who moves next."""

    OUTCOME = "outcome"  #: the program that acts records what became of it
    PROBE = "probe"  #: the sink is asked
    SENT_AGAIN = "sent_again"  #: the same bytes under the same key, when due
    PERSON = "person"  #: nothing is sent by itself any more


def ahead(rules: Rules, standing: Standing, *, due: datetime) -> Ahead | None:
    """What follows when it is due; None in any state but awaiting_confirmation."""
    if standing.state is not State.AWAITING_CONFIRMATION:
        return None
    if rules.done_elsewhere:
        return Ahead.OUTCOME
    if rules.has_probe:
        return Ahead.PROBE
    return Ahead.PERSON if send_again(rules, standing, now=due) is None else Ahead.SENT_AGAIN
