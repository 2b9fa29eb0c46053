"""Whether an operation may be admitted by a record: the rule that the statement which admits repeats in SQL (S7, S8, S10, S22).

A test holds the two against each other, row by row. Never admits: that is the statement's.
"""

from __future__ import annotations

from datetime import datetime

from counterfoil.core.decisions.ordering import FREE, Turn
from counterfoil.core.standing import Rules, Standing
from counterfoil.core.states import WAITING


def may_admit(
    rules: Rules,
    standing: Standing,
    now: datetime,
    *,
    revision: int,
    not_before: datetime | None = None,
    turn: Turn = FREE,
) -> bool:
    """Whether a record of `revision`, whose bytes are the ledger's, may make the operation run.

    `not_before` is the end of its back-off, `turn` what its entity says. Harmless, or with a risk that a person accepted: the
    next admission uses it up.
    """
    if standing.state not in WAITING or revision != standing.revision:
        return False
    if not_before is not None and not_before > now:
        return False
    if standing.tries_left <= 0 or standing.cancel_asked:
        return False
    return turn.free(rules, standing, now) and (standing.accepted_risk or rules.harmless(standing, now))
