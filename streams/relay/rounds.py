"""One relay at work: read what waits, hand it to the producer, take the reports in, note what left. Never more than one thread.

No connection is held while anything waits for the broker. What a report means is the publisher's word, whether it counts on the
compacted topic the key order's; a row is published when its own note is written, and is never given up because time has passed.
"""

import time
from collections import Counter, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from operator import itemgetter

from sqlalchemy import Engine

from counterfoil.core.events import LogEvent
from counterfoil.core.reasons import Reason
from counterfoil.failpoints import failpoint
from counterfoil.ledger.relaying import Aside, Reader, Waiting, Wanted, read_again
from counterfoil.streams.lifeline import Line
from counterfoil.streams.relay.flight import Flight, Sent
from counterfoil.streams.relay.floors import Floors, Pace
from counterfoil.streams.relay.key_order import KeyOrder
from counterfoil.streams.relay.noting import Noter, Report
from counterfoil.streams.relay.outgoing import Composer, Lane
from counterfoil.streams.relay.publisher import Fate, Publisher, fate_of
from counterfoil.streams.relay.refusals import Refusals
from counterfoil.streams.relay.shards import Shards
from counterfoil.streams.roads import Roads
from counterfoil.telemetry import count, log

READ_BYTES = 12 << 20  #: of one read
FLIGHT_BYTES = 32 << 20  #: in flight, beyond which nothing is read
READS_IN_FLIGHT = 3
FULL_WAIT = 0.005  #: seconds until the next look while there is no room
ALONE_AT_ONCE = 50  #: rows retried alone in one turn


_PLACE, _SIZE = itemgetter(0, 1), itemgetter(12)


class ProducerBroken(Exception):
    """The producer has met a fatal error: only a new process has a good one."""


@dataclass
class Relay:
    """The parts of one relay, put together by `relay.run`."""

    engine: Engine
    shards: Shards
    roads: Roads
    publisher: Publisher[Sent]
    alone: Callable[[], Publisher[Sent]]  #: makes the producer of batches of one, at first use
    noter: Noter
    refusals: Refusals
    floors: Floors
    pace: Pace
    composer: Composer
    delivered: Callable[[], None]  #: called when a broker has answered
    database: Line
    look_soon: Callable[[], None] = lambda: None  #: called when a look at the topics may explain a failure
    _alone: Publisher[Sent] | None = None
    _order: KeyOrder[Sent] = field(default_factory=KeyOrder)
    _suspects: deque[Sent] = field(default_factory=deque)  #: to be retried alone
    _asides: list[Aside] = field(default_factory=list)  #: to be moved aside
    _unknown: int = 0  #: sends of this turn that nobody knows the end of
    noted: int = 0  #: rows noted since somebody looked
    _read_at: float = 0.0
    _from_zero: bool = False  #: another thread asks: a road has opened

    def __post_init__(self) -> None:
        self.reader = Reader(self.engine)
        self.flight = Flight(READS_IN_FLIGHT * self.floors.rows, FLIGHT_BYTES)

    def road_opened(self) -> None:
        """Rows that waited for a topic may go: read from zero. Any thread may call it."""
        self._from_zero = True

    def turn(self, longest: float) -> None:
        """One round; returns after at most about `longest` seconds."""
        now = time.monotonic()
        if now >= self._read_at and self.flight.has_room:
            self._read_at = now + self._read(now)
        until = max(0.0, min(longest, self._read_at - time.monotonic()))
        self.take_reports(until if self.flight.has_room else FULL_WAIT)

    def take_reports(self, seconds: float) -> None:
        """Let reports come in for at most so long, and act on them and on what was noted."""
        self.publisher.poll(seconds)
        if self._alone is not None:
            self._alone.poll(0)
        self._resolve()
        self._retry_alone()
        self._move_aside()
        for written in self.noter.written():
            self.noted += written.noted
            landed = self.flight.land_all(report[1] for report in written.reports)
            for lane, rows in Counter(sent.lane for sent in landed).items():
                count("rows_published", rows, operation_type=lane.type, state=lane.kind)
            if written.noted < len(written.reports):
                self.floors.from_zero()
        if self.noter.broken is not None:
            raise self.noter.broken

    def drain(self, deadline: float) -> None:
        """Nothing new is sent: wait for the reports that are due, as long as the deadline allows."""
        while self._unreported() and time.monotonic() < deadline:
            self.take_reports(0.05)
        if self._unreported():
            self.publisher.drop_queued()
            self.take_reports(0)

    def unresolved(self) -> set[int]:
        """Shards with a row whose fate nobody knows."""
        return self.flight.shards

    def _unreported(self) -> int:
        return len(self.publisher) + (len(self._alone) if self._alone is not None else 0)

    # -- reading and sending

    def _read(self, now: float) -> float:
        """Read once and send it off; answers how long to wait before the next read."""
        if self._from_zero:
            self._from_zero = False
            self.floors.from_zero()
        mine = self.shards.sendable()
        if not mine:
            return self.pace.found(0)
        reading = self.floors.ask(now, mine)
        busy = self.flight.ids if reading.with_busy else ()
        wanted = Wanted(reading.floors, reading.share, self.floors.rows, READ_BYTES, busy, self.roads.closed(now))
        self.database.asked()
        failpoint("relay.before_read")
        rows = self.reader.waiting(wanted)
        self.database.good()
        cut = len(rows) >= wanted.rows or sum(map(_SIZE, rows)) >= wanted.bytes
        self.floors.answered(reading, map(_PLACE, rows), cut=cut)
        fresh = [row for row in rows if row[1] not in self.flight]
        if fresh:
            failpoint("relay.before_produce")
            self._send(fresh, set(self.roads.closed(now)))
            failpoint("relay.after_produce")
        wait = self.pace.found(len(fresh))
        return 0.0 if self.floors.backlog else wait

    def _send(self, rows: list[Waiting], closed: set[str]) -> None:
        epochs, send, take_off = self.shards.epochs, self.publisher.send, self.flight.take_off
        for place, row in enumerate(rows):
            shard, row_id, kind, type_name, _, _, _, _, key, value, _, _, size = row
            if place % 256 == 0 and not self.shards.alive:
                return self._go_back(rows[place:])
            lane = self.composer.lane(kind, type_name)
            if not self._open(lane, closed, key):
                self.floors.back(shard, row_id)
                continue
            headers = lane.headers(row)
            sent = Sent(lane, shard, row_id, epochs[shard], key, size)
            if isinstance(headers, Reason):
                self._aside(sent, headers)
                continue
            fate = send(lane.topic, key, value, headers, sent)
            if fate is None:
                take_off(sent)
                if lane.keyed:
                    self._order.sent(sent)
            elif fate is Fate.NOT_SENT:
                return self._go_back(rows[place:])  # the queue is full: reports first
            elif fate is Fate.NEVER:
                self._aside(sent, Reason.MESSAGE_TOO_LARGE)
            else:
                closed.add(lane.road)
                self._shun(lane.road)
                self.floors.back(shard, row_id)
        return None

    def _open(self, lane: Lane, closed: set[str], key: bytes | None) -> bool:
        if lane.road in closed:
            return False
        if self.roads.shut(lane.road, lane.topic) is not None:
            closed.add(lane.road)
            self.look_soon()
            return False
        return not lane.keyed or self._order.may_send(key)

    def _go_back(self, rows: Iterable[Waiting]) -> None:
        """These are read again."""
        for row in rows:
            self.floors.back(row[0], row[1])

    def _land_back(self, rows: Iterable[Sent]) -> None:
        """These leave the flight, and are read again."""
        for sent in rows:
            self.flight.land(sent.id)
            self.floors.back(sent.shard, sent.id)

    def _shun(self, road: str) -> None:
        self.roads.close(road, time.monotonic())
        self.look_soon()

    def _aside(self, sent: Sent, reason: Reason) -> None:
        self.flight.take_off(sent)
        self._asides.append(Aside(sent.shard, sent.id, sent.epoch, reason.value, sent.size))

    def _move_aside(self) -> None:
        if self._asides and self.shards.session is not None:
            self.refusals.move(self.shards.session, self._asides)
            self.flight.land_all(one.id for one in self._asides)
            self._asides = []

    # -- reports

    def _resolve(self) -> None:
        reports = self.publisher.reports()
        if self._alone is not None:
            reports += self._alone.reports()
        if self.publisher.fatal or (self._alone is not None and self._alone.fatal):
            raise ProducerBroken
        if self.publisher.brokers_down:
            self.publisher.brokers_down = False
            self.look_soon()
        notes: list[Report] = []
        arrived: set[str] = set()
        for sent, error, partition, offset in reports:
            if error is not None:
                notes += [row.report for row in self._failed(sent, *fate_of(error))]
                continue
            arrived.add(sent.lane.road)
            if not sent.lane.keyed:
                notes.append((sent.shard, sent.id, sent.epoch, partition, offset))
                continue
            sent.partition, sent.offset = partition, offset
            if sent.void:
                self._land_back([sent])
            notes += [row.report for row in self._order.acknowledged(sent)]
        if self._unknown:
            log(LogEvent.PUBLISH_UNKNOWN, count=self._unknown, reason=Reason.DELIVERY_UNKNOWN)
            self._unknown = 0
        for road in arrived:
            self.roads.delivered(road)
        if arrived:
            self.delivered()
        if notes:
            self.noter.put(notes)

    def _failed(self, sent: Sent, fate: Fate, reason: Reason | None) -> list[Sent]:
        """Act on a report that is no acknowledgement; answers rows that count now because this one is out of their way."""
        keyed = sent.lane.keyed
        if fate is Fate.BROKEN:
            raise ProducerBroken
        if fate is Fate.NEVER and not sent.void:
            if sent.alone:
                self._asides.append(Aside(sent.shard, sent.id, sent.epoch, str(reason), sent.size))
                return self._order.refused(sent) if keyed else []
            if keyed:
                self._land_back(self._order.failed(sent, alone=True))
            self._suspects.append(sent)
            return []
        if fate is Fate.NO_ROAD:
            self.roads.forget(sent.lane.road)
        if fate is not Fate.NEVER:
            count("sends_unknown", operation_type=sent.lane.type, reason=str(reason))
            self._unknown += fate is Fate.UNKNOWN
            self._shun(sent.lane.road)
        self._land_back([sent, *(self._order.failed(sent) if keyed else ())])
        return []

    def _retry_alone(self) -> None:
        """Rows that were refused in a batch, each in a batch of its own: only then is the refusal believed (D08)."""
        for _ in range(min(len(self._suspects), ALONE_AT_ONCE)):
            sent = self._suspects[0]  # it stays there if the database does not answer
            waits = sent.lane.keyed and not sent.void and not self._order.first(sent)  # an earlier row of its key is open
            sending = waits or (not sent.void and self.shards.alive and self._send_alone(sent))
            self._suspects.popleft()
            if waits:
                self._suspects.append(sent)
            elif not sending:
                self._land_back([sent, *(self._order.failed(sent) if sent.lane.keyed else ())])

    def _send_alone(self, sent: Sent) -> bool:
        with self.engine.connect() as connection:
            rows = read_again(connection, [(sent.shard, sent.id)])
        headers = sent.lane.headers(rows[0]) if rows else None
        if headers is None or isinstance(headers, Reason):
            return False  # gone, or taken over
        if self._alone is None:
            self._alone = self.alone()
        sent.alone = True
        return self._alone.send(sent.lane.topic, sent.key, rows[0][9], headers, sent) is None
