"""What a worker has in its hands: records taken and not finished, by partition and by type, and when it must take no more.

The one place that knows which offsets may be committed. Counts only; it never talks to Kafka or to the ledger.
"""

from __future__ import annotations

import threading
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple
from uuid import UUID

from counterfoil.streams.worker.prefix import Passed, Prefix
from counterfoil.streams.worker.progress import Place
from counterfoil.streams.worker.record import Record

#: Bytes of values in hand, of all types, above which nothing more is taken: the bound of the process's memory. Each type has its
#: part of them, so that one that is paused, or whose sink is down, holds up no other (L3).
MOST_BYTES = 32 * 1024 * 1024
#: Offsets of one partition that wait behind an unfinished one, above which it is paused (D35).
LONGEST_TAIL = 20_000


class Finished(NamedTuple):
    """A record that needs nothing more."""

    record: Record
    operation_id: UUID | None
    attempt: int


class Committable(NamedTuple):
    """A partition whose position moved, with the records that the commit passes."""

    place: Place
    position: int
    passed: list[Passed]


class InHand:
    """Thread-safe: the consumer's thread takes, the ledger's threads finish."""

    def __init__(self, most: int, types: int = 1) -> None:
        self._most = most  # records of one type in hand
        self._most_bytes = MOST_BYTES // types  # of one type
        self._guard = threading.Lock()
        self._finished = threading.Condition(self._guard)
        self._prefixes: dict[Place, Prefix] = {}
        self._begun: defaultdict[Prefix, set[int]] = defaultdict(set)  # offsets in work
        self._by_type: Counter[str] = Counter()
        self._done: Counter[Prefix] = Counter()
        self._committed: dict[Place, int] = {}
        self._bytes: Counter[str] = Counter()  # by type
        self._closed = False

    def assign(self, places: Iterable[Place]) -> None:
        """Partitions are ours from here; what was known of them before is forgotten."""
        with self._guard:
            for place in places:
                self._prefixes[place] = Prefix(*place)
                self._committed.pop(place, None)

    def prefix(self, place: Place) -> Prefix | None:
        """The bookkeeping of a partition that is ours and not being given back."""
        found = self._prefixes.get(place)
        return None if found is None or found.revoked else found

    def take(self, type_name: str, records: Sequence[Record]) -> None:
        """Records came from Kafka."""
        by_prefix: dict[Prefix, list[int]] = {}
        for record in records:
            by_prefix.setdefault(record.prefix, []).append(record.offset)
        with self._guard:
            for prefix, offsets in by_prefix.items():
                prefix.take(offsets)
            self._by_type[type_name] += len(records)
            self._bytes[type_name] += sum(record.size for record in records)

    def reach(self, place: Place, end: int) -> None:
        """Kafka says that the partition ends here for now."""
        with self._guard:
            if (prefix := self._prefixes.get(place)) is not None:
                prefix.reach(end)

    def begin(self, type_name: str, records: Sequence[Record]) -> list[Record]:
        """Those of the records that may still be worked on; the others are dropped: their next owner gets them again."""
        with self._guard:
            mine = [record for record in records if not (record.prefix.revoked or self._closed)]
            for record in mine:
                self._begun[record.prefix].add(record.offset)
            if len(mine) < len(records):
                kept = set(map(id, mine))
                self._let_go(type_name, [record for record in records if id(record) not in kept])
            return mine

    def finish(self, type_name: str, finished: Sequence[Finished]) -> None:
        """Records that were begun need nothing more."""
        by_prefix: dict[Prefix, list[Passed]] = {}
        for record, operation_id, attempt in finished:
            by_prefix.setdefault(record.prefix, []).append(Passed(record.offset, operation_id, attempt))
        with self._finished:
            for prefix, passed in by_prefix.items():
                prefix.finish(passed)
                self._begun[prefix].difference_update([one.offset for one in passed])
                self._done[prefix] += len(passed)
            self._let_go(type_name, [one.record for one in finished])
            self._finished.notify_all()

    def abandon(self, records: Iterable[Record]) -> None:
        """Work on records that were begun broke off: they are not finished, and nobody need wait for them."""
        with self._finished:
            for record in records:
                self._begun[record.prefix].discard(record.offset)
            self._finished.notify_all()

    def drop(self, type_name: str, records: Sequence[Record]) -> None:
        """Records that were begun and are not worked on after all: their next owner gets them again."""
        with self._finished:
            for record in records:
                self._begun[record.prefix].discard(record.offset)
            self._let_go(type_name, records)
            self._finished.notify_all()

    def wait_while_ours(self, prefix: Prefix, within: float) -> bool:
        """Wait `within` seconds, or until the partition is given back or the worker stops; whether it goes on with it."""
        with self._finished:
            return not self._finished.wait_for(lambda: prefix.revoked or self._closed, within)

    def _let_go(self, type_name: str, records: Sequence[Record]) -> None:
        self._by_type[type_name] -= len(records)
        self._bytes[type_name] -= sum(record.size for record in records)

    def full(self, type_name: str, place: Place, *, paused: bool) -> bool:
        """Whether the partition must be (or, half way down again, stay) paused."""
        share = 0.5 if paused else 1.0
        prefix = self._prefixes.get(place)
        return (
            self._by_type[type_name] >= self._most * share
            or self._bytes[type_name] >= self._most_bytes * share
            or (prefix is not None and len(prefix) >= LONGEST_TAIL * share)
        )

    def wait_for_room(self, type_names: Collection[str], within: float) -> bool:
        """Wait until none of these types has its hands full, or `within` seconds; whether there is room."""
        with self._finished:
            return self._finished.wait_for(
                lambda: all(self._by_type[n] < self._most and self._bytes[n] < self._most_bytes for n in type_names), within
            )

    def committable(self, of: Collection[Place] | None = None) -> list[Committable]:
        """Partitions (of these; None: all) whose position moved since they were last answered, each with what it passed."""
        moved = []
        with self._guard:
            for place, prefix in self._prefixes.items():
                if of is not None and place not in of:
                    continue
                if prefix.position is not None and prefix.position != self._committed.get(place):
                    self._committed[place] = prefix.position
                    moved.append(Committable(place, prefix.position, prefix.take_passed()))
        return moved

    def commit_failed(self, place: Place) -> None:
        """The position is offered again by the next `committable`."""
        with self._guard:
            self._committed.pop(place, None)

    def positions(self) -> dict[Place, tuple[int | None, int]]:
        """Of each partition that is ours: its position (None: nothing finished yet) and how many were finished."""
        with self._guard:
            return {place: (each.position, self._done[each]) for place, each in self._prefixes.items() if not each.revoked}

    def revoke(self, places: Collection[Place], grace: float) -> None:
        """Begin nothing more from these partitions, and wait until what was begun is finished, for `grace` seconds at most."""
        with self._finished:
            prefixes = [self._prefixes[place] for place in places if place in self._prefixes]
            for prefix in prefixes:
                prefix.revoked = True
            self._finished.notify_all()
            self._finished.wait_for(lambda: not any(self._begun[prefix] for prefix in prefixes), grace)

    def forget(self, places: Iterable[Place]) -> None:
        """Partitions are ours no more."""
        with self._guard:
            for place in places:
                prefix = self._prefixes.pop(place, None)
                if prefix is not None:
                    self._begun.pop(prefix, None)
                    self._done.pop(prefix, None)
                self._committed.pop(place, None)

    def close(self, grace: float) -> bool:
        """Begin nothing more at all; True when all that was begun is finished within `grace` seconds."""
        with self._finished:
            self._closed = True
            self._finished.notify_all()
            return self._finished.wait_for(lambda: not any(self._begun.values()), grace)
