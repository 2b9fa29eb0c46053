"""Keeps a worker's gates as the ledger says: tells what was heard of the sinks, asks for shares and tokens, reads the pauses.

A thread of its own, at the pace of a heartbeat and when something is lacking: a pause is in force everywhere a second later. It
decides nothing. While the ledger is away what it said last holds, and nothing can be admitted anyway.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping

from sqlalchemy import Connection, exc

from counterfoil.core.breaker import Habits, Position
from counterfoil.core.events import LogEvent
from counterfoil.ledger.away import is_away
from counterfoil.ledger.limits import Granted, Key, enter, exchange
from counterfoil.ledger.pauses import paused
from counterfoil.streams.clock import boottime
from counterfoil.streams.ledger_calls import DatabaseGone, LedgerCalls
from counterfoil.streams.worker.gates import Gates, Paused
from counterfoil.streams.worker.lease import Lease
from counterfoil.telemetry import Fields, alarm, count, log

#: Seconds between two questions where nothing is lacking.
EVERY = 1.0
#: Seconds between two questions, whatever is lacking.
LEAST = 0.05


class Keeper:
    """Of one process."""

    def __init__(self, calls: LedgerCalls, lease: Lease, gates: Gates, habits: Habits) -> None:
        self._calls = calls
        self._lease = lease
        self._gates = gates
        self._habits = habits
        self._lacking = threading.Event()
        self._stop = threading.Event()
        self._wake: Callable[[], None] = lambda: None
        self._fail: Callable[[BaseException], None] = lambda error: None
        self._thread = threading.Thread(target=self._keep, name="keeper", daemon=True)
        gates.on_lack(self._lacking.set)

    def open(self) -> None:
        """Ask for the first time, before anything is taken: what is paused is never run, not even for a moment."""
        self._calls.run(lambda connection: enter(connection, self._gates.keys))
        self._exchange(self._calls.run)

    def start(self, wake: Callable[[], None], fail: Callable[[BaseException], None]) -> None:
        """Go on by itself. Both are called in its thread: `wake` when more may be sent, `fail` when it cannot go on."""
        self._wake, self._fail = wake, fail
        self._thread.start()

    def stop(self) -> None:
        """Nothing more is asked."""
        self._stop.set()
        self._lacking.set()

    def _keep(self) -> None:
        while not self._stop.is_set():
            self._lacking.wait(self._gates.again_in(EVERY))
            self._lacking.clear()
            if self._stop.is_set():
                return
            try:
                self._exchange(self._calls.once)
            except (exc.DBAPIError, exc.TimeoutError, DatabaseGone) as error:
                if not is_away(error):
                    self._fail(error)
                    return
            except Exception as error:  # noqa: BLE001 - without its keeper a worker would stand still and not say so
                self._fail(error)
                return
            self._wake()
            self._stop.wait(LEAST)

    def _exchange(self, call: Callable[[Callable[[Connection], Answer]], Answer]) -> None:
        gates, session = self._gates, self._lease.session
        asks, asked_at = gates.asks(), boottime()
        try:
            granted, now_paused = call(lambda connection: (exchange(connection, session, asks, self._habits), paused(connection)))
        except BaseException:
            gates.untold()
            raise
        before = gates.told(granted, session, asked_at, now_paused)
        self._tell(granted)
        for event, targets in ((LogEvent.PAUSED, now_paused - before), (LogEvent.RESUMED, before - now_paused)):
            for kind, name in sorted(target for target in targets if gates.concerns(target)):
                log(event, **_named(kind, name))

    def _tell(self, granted: Mapping[Key, Granted]) -> None:
        """One worker brings a breaker's turn about, and it says so."""
        for key, one in granted.items():
            at, before = one.breaker.position, one.before
            if before is Position.CLOSED and at is not Position.CLOSED:
                alarm(LogEvent.BREAKER_OPENED, sink=key.name, count=one.breaker.failures)
                count("breakers_opened")
            elif before is not Position.CLOSED and at is Position.CLOSED:
                log(LogEvent.BREAKER_CLOSED, sink=key.name)
            elif at is Position.OPEN and before is Position.HALF_OPEN:
                log(LogEvent.BREAKER_PROBED, sink=key.name, count=one.breaker.openings)


Answer = tuple[Mapping[Key, Granted], Paused]


def _named(kind: str, name: str) -> Fields:
    return {"type": name} if kind == "type" else {"sink": name}
