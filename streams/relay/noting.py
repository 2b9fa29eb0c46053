"""The note of what left, written by a thread of its own while the next rows are on their way to the broker.

It writes what the delivery reports said, in batches, again and again until the ledger has it; a report that was not noted when
the process ends is simply a row that is sent again (D05). It never sees a payload.
"""

import threading
from collections import deque
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import NamedTuple

from sqlalchemy import Connection, Engine, exc

from counterfoil.failpoints import failpoint
from counterfoil.ledger import relaying
from counterfoil.ledger.away import is_away, sqlstate
from counterfoil.ledger.engine import in_transaction
from counterfoil.ledger.partitions import make_ahead
from counterfoil.streams.lifeline import Line

GATHER = 0.02  #: seconds in which more reports may join a small batch
SMALL, LARGEST = 1_000, 5_000  #: rows of a batch
NO_PARTITION = "23514"

Report = tuple[int, int, int, int, int]  #: shard, id, epoch, partition, offset


class Written(NamedTuple):
    """A batch that is in the ledger. Fewer `noted` than asked: a shard was taken over meanwhile."""

    reports: Sequence[Report]
    noted: int


class Noter:
    """Takes reports, answers what is written. `session` is asked for each batch: it changes when a lease was over."""

    def __init__(self, engine: Engine, session: Callable[[], int], line: Line) -> None:
        self._engine, self._session, self._line = engine, session, line
        self._waiting: deque[Report] = deque()
        self._written: deque[Written] = deque()
        self._news = threading.Condition()
        self._leaving = False
        self.broken: BaseException | None = None  #: an error that no repetition helps: the process must end
        self._thread = threading.Thread(target=self._run, name="noter", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def put(self, reports: Sequence[Report]) -> None:
        """Note these, soon."""
        with self._news:
            self._waiting.extend(reports)
            self._news.notify()

    def written(self) -> list[Written]:
        """What was written since the last call."""
        return [self._written.popleft() for _ in range(len(self._written))]

    def close(self, within: float) -> bool:
        """Write what is left; answers whether all of it was written in time."""
        with self._news:
            self._leaving = True
            self._news.notify()
        self._thread.join(within)
        return not self._thread.is_alive() and not self._waiting

    def _run(self) -> None:
        try:
            while (batch := self._next()) is not None:
                if batch:
                    self._write(batch)
        except BaseException as error:  # noqa: BLE001 - it is handed to the main thread, which ends the process
            self.broken = error

    def _next(self) -> list[Report] | None:
        with self._news:
            if not self._waiting and not self._leaving:
                self._news.wait()
            if len(self._waiting) < SMALL and not self._leaving:
                self._news.wait_for(lambda: len(self._waiting) >= SMALL or self._leaving, GATHER)
            if not self._waiting and self._leaving:
                return None
            return [self._waiting.popleft() for _ in range(min(len(self._waiting), LARGEST))]

    def _write(self, batch: list[Report]) -> None:
        failpoint("relay.after_ack")
        while True:
            self._line.asked()
            try:
                noted = in_transaction(self._engine, lambda connection: self._note(connection, batch))
            except (exc.DBAPIError, exc.TimeoutError) as error:
                if not self._repair(error):
                    raise
                with self._news:
                    if self._leaving and self._line.lost_for > 0:
                        return  # nothing is lost: these rows are sent again by whoever comes next
                    self._news.wait_for(lambda: self._leaving, 0.25)
                continue
            break
        self._line.good()
        failpoint("relay.after_note")
        self._written.append(Written(batch, noted))

    def _note(self, connection: Connection, batch: list[Report]) -> int:
        noted = relaying.note(connection, self._session(), batch)
        failpoint("relay.before_note_commit")
        return noted

    def _repair(self, error: exc.SQLAlchemyError) -> bool:
        """Whether the same may be tried again: the database is away, or today's partition was missing and is made."""
        if is_away(error):
            self._line.bad(type(error).__name__)
            return True
        if sqlstate(error) == NO_PARTITION:
            in_transaction(self._engine, lambda connection: make_ahead(connection, timedelta(days=1)))
            return True
        return False
