"""How many effects may be in flight: by process, by threads for those that are not async, and by the gates of their sinks.

Used on the event loop alone.
"""

from __future__ import annotations

from collections.abc import Callable

from counterfoil.core.effect import Effect
from counterfoil.streams.worker.gates import Gates
from counterfoil.streams.worker.runnable import RunnableType


class Slots:
    """A slot is held from before the admission of an operation until its effect has answered."""

    def __init__(self, total: int, threads: int, gates: Gates) -> None:
        self.gates = gates
        self._total = total
        self._threads = threads
        self._used = 0
        self._in_threads = 0
        self._waiting: list[Callable[[], None]] = []  # who wants to know that a slot came free, in turn

    def on_free(self, wake: Callable[[], None]) -> None:
        """Call `wake` when slots came free; whoever was first last time is last this time (L3)."""
        self._waiting.append(wake)

    def free(self, type_: RunnableType, waiting: int) -> int:
        """How many operations of the type may be admitted now; `waiting` ones would like to."""
        free = self._total - self._used
        if not _outside(type_).is_async:
            free = min(free, self._threads - self._in_threads)
        room = self.gates.room(type_.name, waiting)
        return max(free if room is None else min(free, room), 0)

    def take(self, type_: RunnableType, count: int) -> None:
        """Hold that many."""
        self.gates.take(type_.name, count)
        self._change(type_, count)

    def give_back(self, type_: RunnableType, count: int) -> None:
        """So many were held and not admitted."""
        self.gates.give_back(type_.name, count)
        self._freed(type_, count)

    def release(self, type_: RunnableType, count: int) -> None:
        """So many have been answered."""
        self.gates.release(type_.name, count)
        self._freed(type_, count)

    def _freed(self, type_: RunnableType, count: int) -> None:
        self._change(type_, -count)
        if self._waiting:
            self._waiting.append(self._waiting.pop(0))
        for wake in list(self._waiting):
            wake()

    def _change(self, type_: RunnableType, by: int) -> None:
        effect = _outside(type_)
        self._used += by
        if not effect.is_async:
            self._in_threads += by


def _outside(type_: RunnableType) -> Effect[object]:
    assert isinstance(type_.effect, Effect)
    return type_.effect
