"""What follows a commit that the broker confirmed: the line `ack_sent` of each operation that it passed, and one row a partition
in the ledger, from which a first delivery's acknowledgement is derived.

Nothing is written for a commit that failed. Losing a note loses no operation: the next commit's note covers it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence

from sqlalchemy import Connection

from counterfoil.core.events import LogEvent
from counterfoil.failpoints import failpoint
from counterfoil.ledger.acknowledgements import note
from counterfoil.streams.ledger_calls import LedgerCalls
from counterfoil.streams.worker.in_hand import Committable
from counterfoil.streams.worker.prefix import Passed
from counterfoil.streams.worker.progress import Place
from counterfoil.telemetry import Fields, log_each


class Acknowledgements:
    """Commits on their way, and those to be noted. Thread-safe."""

    def __init__(self, topics: Mapping[str, tuple[str, str]]) -> None:
        self._topics = topics
        self._guard = threading.Lock()
        self._passed: dict[Place, list[Passed]] = {}
        self._to_note: dict[Place, int] = {}

    def issued(self, moved: Sequence[Committable]) -> None:
        """A commit of these positions was asked for."""
        with self._guard:
            for place, _, passed in moved:
                self._passed.setdefault(place, []).extend(passed)

    def committed(self, place: Place, up_to: int) -> None:
        """The broker confirmed it."""
        with self._guard:
            waiting = self._passed.get(place, [])
            passed = [one for one in waiting if one.offset < up_to]
            self._passed[place] = [one for one in waiting if one.offset >= up_to]
            self._to_note[place] = max(up_to, self._to_note.get(place, -1))
        type_name = self._topics[place[0]][0]
        log_each(LogEvent.ACK_SENT, (_line(type_name, one) for one in passed if one.operation_id is not None))

    def forget(self, places: Iterable[Place]) -> None:
        """Somebody else's partitions: what was not confirmed by now never will be."""
        with self._guard:
            for place in places:
                self._passed.pop(place, None)

    def write(self, calls: LedgerCalls, session: Callable[[], int]) -> None:
        """Write the notes. Blocks its thread."""
        with self._guard:
            noted, self._to_note = self._to_note, {}
        if not noted:
            return

        def unit(connection: Connection) -> None:
            note(connection, session(), noted)
            failpoint("worker.before_acknowledged_commit")

        try:
            calls.once(unit)
        except Exception:
            with self._guard:
                for place, up_to in noted.items():
                    self._to_note[place] = max(up_to, self._to_note.get(place, -1))
            raise


def _line(type_name: str, one: Passed) -> Fields:
    assert one.operation_id is not None
    return {"operation_id": one.operation_id, "type": type_name, "attempt": one.attempt}
