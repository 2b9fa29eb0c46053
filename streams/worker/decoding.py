"""Decodes records between two marks in the ledger, so that one that kills the process is found and given up (S23).

One batch is decoded at a time in a process: its mark names what would be to blame. After a death the records of the mark are
decoded one by one, each under a mark of its own; what core finds guilty is not decoded any more. Blocks its thread.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from sqlalchemy import Connection

from counterfoil.core.events import LogEvent
from counterfoil.core.suspicion import MOST_KILLS, Suspicion
from counterfoil.failpoints import failpoint
from counterfoil.ledger import decoding as ledger
from counterfoil.ledger.decoding import Mark, Place
from counterfoil.streams.ledger_calls import LedgerCalls
from counterfoil.streams.worker.in_hand import InHand
from counterfoil.streams.worker.prefix import Prefix
from counterfoil.streams.worker.record import Readable, Record, Unreadable, killer
from counterfoil.telemetry import alarm

Found = Readable | Unreadable
Read = Callable[[Record], Found]


@dataclass(eq=False)
class _Watch:
    """What this process knows of one assignment of a partition."""

    prefix: Prefix
    epoch: int
    suspicion: Suspicion
    newest: Mark | None = None

    def mark(self, records: Sequence[Record]) -> Mark:
        offsets = [record.offset for record in records]
        self.newest = Mark(self.prefix.topic, self.prefix.partition, self.epoch, min(offsets), max(offsets))
        return self.newest


@dataclass
class Decoded:
    """A batch, in its order, without what was given back meanwhile; and the marks that are still to be wiped."""

    found: list[Found]
    marks: list[Mark] = field(default_factory=list)


class Decoding:
    """The marks of one worker. Thread-safe."""

    def __init__(self, calls: LedgerCalls, session: Callable[[], int], in_hand: InHand) -> None:
        self._calls = calls
        self._session = session
        self._in_hand = in_hand
        self._own: set[int] = set()
        self._guard = threading.Lock()
        self._watches: dict[Place, _Watch] = {}

    def decode(self, type_name: str, records: Sequence[Record], read: Read) -> Decoded:
        """Decode begun records of one type. Whoever calls wipes the marks by `finish`, in the transaction that follows."""
        with self._guard:
            watches = self._watch(records)
            alone = [one for one in records if watches[_place(one)].suspicion.covers(one.offset)]
            suspected = {id(record) for record in alone}
            together = [record for record in records if id(record) not in suspected]
            marks = self._mark(watches, together, durable=False)
            failpoint("worker.decoding")
            if not alone:
                return Decoded([read(record) for record in records], marks)
            found = {id(record): read(record) for record in together}
            self._wipe(marks)
            dropped = self._one_by_one(watches, alone, read, found)
            self._in_hand.drop(type_name, dropped)
            return Decoded([found[id(record)] for record in records if id(record) in found])

    def finish(self, connection: Connection, decoded: Decoded) -> None:
        """Wipe a batch's marks, but for those that a newer batch has replaced."""
        newest = {watch.newest for watch in list(self._watches.values())}
        ledger.finish(connection, [mark for mark in decoded.marks if mark in newest])

    def wipe(self, decoded: Decoded) -> None:
        """The same in a transaction of its own, where other code runs before the next one."""
        if decoded.marks:
            self._calls.run(lambda connection: self.finish(connection, decoded))
            decoded.marks.clear()

    # -- marks

    def _watch(self, records: Iterable[Record]) -> dict[Place, _Watch]:
        """What is known of the partitions; those that are new to this process, or to this assignment, are taken over."""
        prefixes = {_place(record): record.prefix for record in records}
        new = [place for place, prefix in prefixes.items() if not self._knows(place, prefix)]
        if new:
            self._take(new, prefixes)
        return {place: self._watches[place] for place in prefixes}

    def _knows(self, place: Place, prefix: Prefix) -> bool:
        watch = self._watches.get(place)
        return watch is not None and watch.prefix is prefix

    def _take(self, places: Collection[Place], prefixes: dict[Place, Prefix]) -> None:
        session = self._now()
        taken = self._calls.run(lambda connection: ledger.take(connection, session, self._own, places))
        for place, (epoch, suspicion, died) in taken.items():
            self._watches[place] = _Watch(prefixes[place], epoch, suspicion)
            if died:
                topic, partition = place
                alarm(LogEvent.SUSPECTED, topic=topic, partition=partition, offset=suspicion.first, count=died)

    def _mark(self, watches: dict[Place, _Watch], records: Sequence[Record], *, durable: bool) -> list[Mark]:
        marks = [watches[place].mark(list(group)) for place, group in groupby(sorted(records, key=_place), key=_place)]
        if not marks:
            return marks
        session = self._now()
        lost = self._calls.run(lambda connection: ledger.mark(connection, session, marks, durable=durable))
        if not lost:
            return marks
        # Somebody else marked there, who has the partition now or had it before: its records are still begun by us, so again.
        self._take(lost, {place: watches[place].prefix for place in lost})
        watches.update({place: self._watches[place] for place in lost})
        return self._mark(watches, records, durable=durable)

    def _wipe(self, marks: Sequence[Mark]) -> None:
        if marks:
            self._calls.run(lambda connection: ledger.finish(connection, marks))

    def _now(self) -> int:
        session = self._session()
        self._own.add(session)
        return session

    # -- suspects

    def _one_by_one(
        self, watches: dict[Place, _Watch], alone: Sequence[Record], read: Read, found: dict[int, Found]
    ) -> list[Record]:
        """Decode each under a mark of its own; answers those that were given back while it was waited for."""
        dropped: list[Record] = []
        given_back: set[Place] = set()
        for record in alone:
            place = _place(record)
            guilty = None if place in given_back else self._guilty(watches[place], record)
            if guilty is None:
                given_back.add(place)
                dropped.append(record)
                continue
            marks = self._mark(watches, [record], durable=True)
            failpoint("worker.decoding_alone")
            if guilty:
                found[id(record)] = killer(record, look=len(watches[place].suspicion.accusers(record.offset)) <= MOST_KILLS)
            else:
                found[id(record)] = read(record)
            self._wipe(marks)
        return dropped

    def _guilty(self, watch: _Watch, record: Record) -> bool | None:
        """Whether it is given up; None where that was waited for, and the partition was given back meanwhile.

        A session counts as dead when its lease is over. One that renews it, or ended in order, did not die of the record.
        """
        seen: dict[int, object] = {}
        while watch.suspicion.guilty(record.offset):
            accusers = watch.suspicion.accusers(record.offset)
            alive = self._calls.run(lambda connection, accusers=accusers: ledger.living(connection, accusers))  # type: ignore[misc]
            if not alive:
                return True
            acquitted = {one for one, said in alive.items() if said.in_order or seen.get(one, said.until) != said.until}
            watch.suspicion = watch.suspicion.acquitted(frozenset(acquitted))
            seen = {one: said.until for one, said in alive.items()}
            wait = max(0.05, min(said.seconds for said in alive.values()))
            if not acquitted and not self._in_hand.wait_while_ours(watch.prefix, wait):
                return None
        return False


def _place(record: Record) -> Place:
    return record.prefix.topic, record.prefix.partition
