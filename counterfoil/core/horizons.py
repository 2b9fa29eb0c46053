"""Whether a sink remembers a key for as long as a type may repeat under it.

Reads declarations only. The longest road is taken: every try waits its full time-out and its full back-off.
"""

from datetime import timedelta
from typing import Any, Final

from counterfoil.core.effect import Effect
from counterfoil.core.operation_type import OperationType
from counterfoil.core.standing import Rules

__all__ = ["longest_tries", "outlasts"]

_UNUSED: Final = timedelta(0)  # a key's horizon depends neither on the ledger's run time nor on people's


def longest_tries(rules: Rules) -> timedelta:
    """From the first admission to the last, when every try takes its maximum run time and every wait is the longest."""
    waits = timedelta(0)
    wait = rules.first
    for _ in range(rules.max_tries - 1):
        waits += wait + rules.timeout
        wait = min(wait * 2, rules.cap)
    return waits


def outlasts(of: OperationType[Any], send_grace: timedelta) -> str | None:
    """What outlasts the key horizon, in words; None where nothing does or the sink has no horizon."""
    if not isinstance(of.effect, Effect):
        return None
    rules = Rules.of(of, send_grace=send_grace, in_ledger_time=_UNUSED, review_within=_UNUSED)
    if rules.horizon is None:
        return None
    if rules.landing >= rules.horizon:
        return "one attempt outlasts the key horizon"
    if longest_tries(rules) + rules.landing >= rules.horizon:
        return "tries outlast the key horizon"
    return None
