"""The worker's session and its lease, held against a clock that goes on while the process or the machine is suspended.

A worker that was stopped for longer than its lease finds the lease over before it sends anything (S9). The local end of a lease
is reckoned from before the heartbeat was sent, so it is never later than the ledger's. It must never extend a lease by itself.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from contextlib import suppress
from datetime import timedelta
from typing import Any, NamedTuple

from sqlalchemy import exc

from counterfoil.core.events import LogEvent
from counterfoil.ledger.sessions import close_session, heartbeat, open_session
from counterfoil.streams.clock import boottime
from counterfoil.streams.ledger_calls import DatabaseGone, LedgerCalls
from counterfoil.telemetry import alarm, log


class Held(NamedTuple):
    """One session, and the end of its lease by `boottime`."""

    session: int
    until: float


class Lease:
    """The session of this process; a new one is opened when the lease of the old one is over. Thread-safe."""

    def __init__(self, calls: LedgerCalls, name: str, lease: timedelta, capable: Mapping[str, Any]) -> None:
        self._calls = calls
        self._name = name
        self._lease = lease
        self._capable = dict(capable)
        self._held = Held(0, 0.0)
        self._renewing = threading.Lock()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def session(self) -> int:
        """The session's number in the ledger."""
        return self._held.session

    def holds(self, session: int) -> bool:
        """Whether work admitted under this session may still be sent: the last check before the first byte."""
        held = self._held
        return held.session == session and boottime() < held.until

    def open(self) -> None:
        """Begin, and keep it alive by a thread of its own: a loop that is blocked must not lose it."""
        self._renew()
        self._thread = threading.Thread(target=self._beat, name="lease", daemon=True)
        self._thread.start()

    def renew(self) -> int:
        """Make sure that the lease is held, by a new session if the old one's is over; answers the session."""
        with self._renewing:
            if not self.holds(self._held.session) or not self._beat_once():
                self._renew()
        return self._held.session

    def close(self) -> None:
        """End the lease at once, so that what is left is due now; nothing is sent after this."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(5)
        session, self._held = self._held.session, Held(self._held.session, 0.0)
        with suppress(exc.DBAPIError, exc.TimeoutError):  # it ends by itself
            self._calls.once(lambda connection: close_session(connection, session))

    def _renew(self) -> None:
        lost = self._held.session
        if lost:
            alarm(LogEvent.LEASE_LOST, session=lost)

        def unit(connection: Any) -> tuple[float, int]:
            before = boottime()
            return before, open_session(connection, "worker", self._name, self._lease, self._capable)

        before, session = self._calls.run(unit)
        self._held = Held(session, before + self._lease.total_seconds())
        log(LogEvent.LEASE_TAKEN, session=session, worker=self._name)

    def _beat_once(self) -> bool:
        session = self._held.session
        before = boottime()
        alive = self._calls.once(lambda connection: heartbeat(connection, session, self._lease)) is not None
        if alive:
            self._held = Held(session, before + self._lease.total_seconds())
        return alive

    def _beat(self) -> None:
        while not self._stop.wait(self._lease.total_seconds() / 3):
            try:
                with self._renewing:
                    if not self._beat_once():
                        self._renew()
            except DatabaseGone:
                return
            except (exc.DBAPIError, exc.TimeoutError):
                continue  # the next beat tries again; until then the lease runs out by itself
