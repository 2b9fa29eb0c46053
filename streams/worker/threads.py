"""The bounded pool of threads for effects that are not async; a call past its time-out keeps its thread, which counts as lost.

A lost thread is replaced, so that the others go on; how many may be lost is the worker's to say. Threads are daemons: a call that
never returns does not keep the process.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Generic, TypeVar

T = TypeVar("T")


class Call(Generic[T]):
    """One call that was handed to the pool."""

    def __init__(self, run: Callable[[], T]) -> None:
        self.run = run
        self.future: Future[T] = Future()
        self.lost = False


class Threads:
    """Thread-safe."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._calls: SimpleQueue[Call[object]] = SimpleQueue()
        self._guard = threading.Lock()
        self._alive = 0
        self._idle = 0
        self._lost = 0

    @property
    def lost(self) -> int:
        """Threads whose call is past its time-out and has not returned."""
        return self._lost

    def submit(self, run: Callable[[], T]) -> Call[T]:
        """Run it on a thread as soon as one is free."""
        call = Call(run)
        with self._guard:
            start = self._idle == 0 and self._alive < self._size
            if start:
                self._alive += 1
            else:
                self._idle = max(self._idle - 1, 0)
        self._calls.put(call)  # type: ignore[arg-type]
        if start:
            self._start()
        return call

    def lose(self, call: Call[T]) -> bool:
        """Nobody waits for the call any more; False when it was never begun, and now never will be."""
        if call.future.cancel():
            return False
        with self._guard:
            if call.future.done():
                return True
            call.lost = True
            self._lost += 1
        self._start()  # in place of the lost one
        return True

    def _start(self) -> None:
        threading.Thread(target=self._work, name="effect", daemon=True).start()

    def _work(self) -> None:
        while True:
            call = self._calls.get()
            if call.future.set_running_or_notify_cancel():
                self._run(call)
            with self._guard:
                if call.lost:
                    self._lost -= 1
                    return  # another thread has taken its place
                self._idle += 1

    @staticmethod
    def _run(call: Call[object]) -> None:
        try:
            result = call.run()
        except BaseException as error:  # noqa: BLE001 - it belongs to whoever waits for the future
            call.future.set_exception(error)
        else:
            call.future.set_result(result)
