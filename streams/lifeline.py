"""How long the database and the broker have been away, and the end of a process that has lost one of them for too long.

A process whose main thread hangs in a call that never returns is ended by a thread of its own: an orchestrator must never look
at a healthy corpse (D34). Nothing is repaired here.
"""

import os
import threading
import time
from collections.abc import Callable

from counterfoil.core.events import LogEvent
from counterfoil.telemetry import alarm, log

UNREACHABLE = 3  #: exit code, as in the command line's table
FAULT = 4
_LOST = {"database": LogEvent.DATABASE_LOST, "broker": LogEvent.BROKER_LOST}
_BACK = {"database": LogEvent.DATABASE_BACK, "broker": LogEvent.BROKER_BACK}


class Line:
    """One thing that may be lost. A question that is not answered counts from when it was asked."""

    def __init__(self, name: str, clock: Callable[[], float] = time.monotonic) -> None:
        self.name, self._clock = name, clock
        self._lost_at: float | None = None
        self._asked_at: float | None = None

    def asked(self) -> None:
        """A call begins that may hang."""
        self._asked_at = self._clock()

    def good(self) -> None:
        """It has answered."""
        self._asked_at = None
        if self._lost_at is not None:
            log(_BACK[self.name], seconds=round(self._clock() - self._lost_at, 1))
            self._lost_at = None

    def bad(self, error_class: str) -> None:
        """It has failed."""
        self._asked_at = None
        if self._lost_at is None:
            self._lost_at = self._clock()
            alarm(_LOST[self.name], error_class=error_class)

    @property
    def lost_for(self) -> float:
        """Seconds without an answer; 0 while all is well."""
        now = self._clock()
        waiting = now - self._asked_at if self._asked_at is not None else 0.0
        return max(waiting, now - self._lost_at if self._lost_at is not None else 0.0)


class Watchdog:
    """Ends the process when it does not end itself: `over` says since when it should have."""

    def __init__(self, over: Callable[[], bool], code: int, grace: float) -> None:
        self._over, self._code, self._grace = over, code, grace
        self._finished = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="watchdog", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def finished(self) -> None:
        """The process is leaving by itself."""
        self._finished.set()

    def _watch(self) -> None:
        since: float | None = None
        while not self._finished.wait(0.25):
            now = time.monotonic()
            since = (since if since is not None else now) if self._over() else None
            if since is not None and now - since > self._grace:
                alarm(LogEvent.STOPPED, exit_code=self._code)
                os._exit(self._code)
