"""How many effects may be in flight: by process, by sink, and by threads for those that are not async. Counts only.

Used on the event loop alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from counterfoil.core.effect import Effect
from counterfoil.streams.worker.runnable import RunnableType


class Slots:
    """A slot is held from before the admission of an operation until its effect has answered."""

    def __init__(self, total: int, threads: int) -> None:
        self._total = total
        self._threads = threads
        self._used = 0
        self._in_threads = 0
        self._by_sink: Counter[str] = Counter()
        self._waiting: list[Callable[[], None]] = []  # who wants to know that a slot came free, in turn

    def on_free(self, wake: Callable[[], None]) -> None:
        """Call `wake` when slots came free; whoever was first last time is last this time (L3)."""
        self._waiting.append(wake)

    def free(self, type_: RunnableType) -> int:
        """How many operations of the type may be admitted now."""
        effect = _outside(type_)
        free = min(self._total - self._used, effect.sink.limits.concurrency - self._by_sink[effect.sink.name])
        return max(free if effect.is_async else min(free, self._threads - self._in_threads), 0)

    def take(self, type_: RunnableType, count: int) -> None:
        """Hold that many."""
        self._change(type_, count)

    def release(self, type_: RunnableType, count: int) -> None:
        """Give back that many."""
        self._change(type_, -count)
        if self._waiting:
            self._waiting.append(self._waiting.pop(0))
        for wake in list(self._waiting):
            wake()

    def _change(self, type_: RunnableType, by: int) -> None:
        effect = _outside(type_)
        self._used += by
        self._by_sink[effect.sink.name] += by
        if not effect.is_async:
            self._in_threads += by


def _outside(type_: RunnableType) -> Effect[object]:
    assert isinstance(type_.effect, Effect)
    return type_.effect
