"""Calls to the ledger from a long-running process: each unit is repeated while the database is away, until that lasts too long.

Blocks its thread, so it is never called on the event loop. A unit may run twice when the answer to its commit was lost: every
unit of ours reads first how things stand.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

from sqlalchemy import Connection, Engine, exc

from counterfoil.core.backoff import delay
from counterfoil.ledger.away import is_away
from counterfoil.ledger.engine import in_transaction
from counterfoil.streams.lifeline import Line

T = TypeVar("T")


class DatabaseGone(Exception):
    """The database was away for longer than the process may go on without it, or the process stops meanwhile."""


class LedgerCalls:
    """One engine, with how long it has been away. Called from several threads."""

    def __init__(self, engine: Engine, stop_after: float) -> None:
        self.engine = engine
        self.line = Line("database")
        self._stop_after = stop_after
        self._leaving = threading.Event()

    def leave(self) -> None:
        """From now on a call that finds the database away is given up at once."""
        self._leaving.set()

    def once(self, unit: Callable[[Connection], T]) -> T:
        """Run a unit in a transaction; no repetition. Raises what the database says."""
        self.line.asked()
        try:
            result = in_transaction(self.engine, unit)
        except (exc.DBAPIError, exc.TimeoutError) as error:
            if is_away(error):
                self.line.bad(type(error).__name__)
            raise
        self.line.good()
        return result

    def run(self, unit: Callable[[Connection], T]) -> T:
        """Run a unit in a transaction, again and again while the database is away. Raises DatabaseGone."""
        times = 0
        while True:
            try:
                return self.once(unit)
            except (exc.DBAPIError, exc.TimeoutError) as error:
                if not is_away(error):
                    raise
            times += 1
            if self.gone() or self._leaving.wait(delay(times, 0.1, 2.0, 0.5)):
                raise DatabaseGone

    def gone(self) -> bool:
        """Whether the database has been away, or has not answered, for too long."""
        return self.line.lost_for > self._stop_after
