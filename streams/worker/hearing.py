"""What one worker heard of one sink, for the ledger's breaker: told once, and counts only. It never keeps an answer."""

from __future__ import annotations

from counterfoil.core.breaker import Heard, Sign


class Hearing:
    """Failures of distinct operations since the last sign of life. One operation that fails again and again is its own affair."""

    def __init__(self) -> None:
        self._failing: set[int] = set()  # since the last sign of life
        self._told = 0  # how many of them the ledger knows
        self._alive = False  # a sign of life that the ledger does not know of
        self._last: Heard | None = None  # told, and perhaps not understood

    def note(self, number: int, sign: Sign) -> None:
        """An answer to a call for the operation of that number."""
        if sign is Sign.ALIVE:
            self._alive, self._told = True, 0
            self._failing.clear()
        elif sign is Sign.DOWN:
            self._failing.add(number)

    @property
    def failing(self) -> int:
        """Operations that failed in a row, as far as this worker knows."""
        return len(self._failing)

    def tell(self) -> Heard:
        """What the ledger does not know yet; it counts as told until `untold` says otherwise."""
        heard = self._last = Heard(len(self._failing) - self._told, self._alive)
        self._told, self._alive = len(self._failing), False
        return heard

    def untold(self) -> None:
        """The ledger could not be told: the next time says it again."""
        last, self._last = self._last, None
        if last is not None and not self._alive:  # a later sign of life makes the earlier news worthless
            self._alive, self._told = last.alive, max(self._told - last.failures, 0)

    def forget(self) -> None:
        """The sink was down and is well again: what was heard meanwhile says nothing."""
        self._failing.clear()
        self._told, self._alive, self._last = 0, False, None
