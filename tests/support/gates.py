"""Gates of a worker whose ledger has granted what is declared: no other worker shares it."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta

from counterfoil.core.breaker import Breaker, Position
from counterfoil.ledger.limits import Granted
from counterfoil.streams.clock import boottime
from counterfoil.streams.worker.gates import Gates, Paused
from counterfoil.streams.worker.runnable import RunnableType

SESSION = 7
AFTER = 3  #: failures that open


def opened(types: Iterable[RunnableType]) -> Gates:
    """Nothing is paused, every breaker is closed, there is no rate."""
    gates = Gates(types, AFTER)
    grant(gates)
    return gates


def grant(
    gates: Gates,
    *,
    slots: int | None = None,
    tokens: int | None = None,
    breaker: Breaker | None = None,
    paused: Paused = frozenset(),
) -> None:
    """An exchange with a ledger that answers this for every sink."""
    at = boottime()
    granted = {
        ask.key: Granted(
            ask.concurrency if slots is None else slots,
            ask.concurrency,
            tokens,
            timedelta(0),
            breaker or Breaker(),
            Position.CLOSED,
        )
        for ask in gates.asks()
    }
    gates.told(granted, SESSION, at, paused)
