"""Whether a sink remembers a key for as long as a type may repeat under it.

Reads declarations only. The longest road is taken: every try waits its full time-out and its full back-off.
"""

from datetime import timedelta
from typing import Any

from counterfoil.core.effect import Effect
from counterfoil.core.operation_type import OperationType
from counterfoil.core.records import FOREVER
from counterfoil.core.sink import ByKey

__all__ = ["landing", "longest_tries", "outlasts"]


def landing(effect: Effect[Any], send_grace: timedelta) -> timedelta:
    """From an admission until nothing of that attempt can reach the sink any more."""
    return effect.timeout + send_grace + effect.sink.request_life


def longest_tries(effect: Effect[Any]) -> timedelta:
    """From the first admission to the last, when every try ends at its time-out and every wait is the longest."""
    waits = timedelta(0)
    wait = effect.retry.backoff.first
    for _ in range(effect.retry.max_tries - 1):
        waits += wait + effect.timeout
        wait = min(wait * 2, effect.retry.backoff.cap)
    return waits


def outlasts(of: OperationType[Any], send_grace: timedelta) -> str | None:
    """What outlasts the key horizon, in words; None where nothing does or the sink has no horizon."""
    effect = of.effect
    if not isinstance(effect, Effect) or not isinstance(effect.sink.idempotency, ByKey):
        return None
    horizon = effect.sink.idempotency.horizon
    if horizon == FOREVER:
        return None
    if landing(effect, send_grace) >= horizon:
        return "one attempt outlasts the key horizon"
    if longest_tries(effect) + landing(effect, send_grace) >= horizon:
        return "tries outlast the key horizon"
    return None
