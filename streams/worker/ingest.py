"""Takes records from Kafka in a thread of its own: batches go down the types' channels, offsets are committed behind them.

`consume` goes on being called whatever the rest of the process does, so the group keeps its member (D31); when hands are full the
partitions are paused instead. A commit never passes a record that is not finished. It decides nothing about operations.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from counterfoil.core.events import LogEvent
from counterfoil.failpoints import failpoint
from counterfoil.streams.worker.acknowledging import Acknowledgements
from counterfoil.streams.worker.in_hand import Committable, InHand
from counterfoil.streams.worker.progress import Place
from counterfoil.streams.worker.record import Record
from counterfoil.telemetry import alarm, log

#: Seconds between two asynchronous commits: a commit costs the broker a record.
COMMIT_EVERY = 0.05
#: Seconds that full hands are waited for before their partitions are paused.
ROOM_WITHIN = 0.25

Deliver = Callable[[str, list[Record]], None]


class Pace(NamedTuple):
    """How much is taken, and when not."""

    batch: int  #: records of one call
    wait: float  #: seconds for a full batch
    grace: float  #: seconds for what runs when a partition is revoked
    holds: Callable[[str], bool]  #: whether nothing of a type is to be taken: it is paused, or its sink is down


class Ingest:
    """The consumer of one worker, subscribed to the command and retry topics of its types."""

    def __init__(
        self,
        consumer: Consumer,
        topics: Mapping[str, tuple[str, str]],
        in_hand: InHand,
        acknowledgements: Acknowledgements,
        pace: Pace,
    ) -> None:
        self.consumer = consumer
        self._topics = topics
        self._in_hand = in_hand
        self._acknowledgements = acknowledgements
        self._pace = pace
        self._deliver: Deliver = lambda type_name, records: None
        self._fail: Callable[[], None] = lambda: None
        self._paused: set[Place] = set()
        self._mine: set[Place] = set()
        self._missing: set[str] = set()
        self._committed_at = 0.0
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="ingest", daemon=True)

    def start(self, deliver: Deliver, fail: Callable[[], None]) -> None:
        """Begin. Both are called in this object's thread: `deliver` hands a batch over, `fail` says that it cannot go on."""
        self._deliver, self._fail = deliver, fail
        self._thread.start()

    def stop(self, within: float) -> bool:
        """Commit what is finished, synchronously, leave the group and end; True when that was done in time."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(within)
        return not self._thread.is_alive()

    # -- the thread

    def _run(self) -> None:
        try:
            self.consumer.subscribe(
                list(self._topics), on_assign=self._on_assign, on_revoke=self._on_revoke, on_lost=self._on_lost
            )
            while not self._stopping.is_set():
                self._pause_and_resume()
                messages = self.consumer.consume(self._pace.batch, self._pace.wait)
                if messages:
                    self._sort(messages)
                self._commit()
        except Exception as error:  # noqa: BLE001 - the process must not live on without its consumer (D28)
            alarm(LogEvent.UNEXPECTED, error_class=type(error).__name__, error_code=_code(error))
            self._fail()
        finally:
            self._leave_group()

    def _leave_group(self) -> None:
        try:
            self._commit_now(self._in_hand.committable())
            self.consumer.close()
        except (KafkaException, RuntimeError) as error:
            alarm(LogEvent.COMMIT_FAILED, error_code=_code(error))

    def _sort(self, messages: Sequence[Message]) -> None:
        by_topic: dict[str, list[Record]] = {}
        ends: list[tuple[Place, int]] = []
        prefix_of = self._in_hand.prefix
        for message in messages:
            topic, partition, offset = message.topic(), message.partition(), message.offset()
            if (error := message.error()) is not None:
                self._on_error(error, topic, partition, offset, ends)
                continue
            assert topic is not None  # a record, unlike an error, always says where it stands
            assert partition is not None
            assert offset is not None
            if (prefix := prefix_of((topic, partition))) is not None:
                by_topic.setdefault(topic, []).append(Record(message, prefix, offset, len(message)))
        for topic, records in by_topic.items():
            type_name = self._topics[topic][0]
            self._in_hand.take(type_name, records)
            failpoint("worker.after_ingest")
            self._deliver(type_name, records)
        for place, end in ends:
            self._in_hand.reach(place, end)

    def _on_error(
        self, error: KafkaError, topic: str | None, partition: int | None, offset: int | None, ends: list[tuple[Place, int]]
    ) -> None:
        code = error.code()
        if code == KafkaError._PARTITION_EOF:
            if topic is not None and partition is not None and offset is not None:
                ends.append(((topic, partition), offset))
        elif code in (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION):
            if topic is not None and topic not in self._missing:
                self._missing.add(topic)
                alarm(LogEvent.TOPIC_MISSING, topic=topic)
        elif error.fatal():
            raise KafkaException(error)
        else:
            alarm(LogEvent.UNEXPECTED, error_code=error.name(), topic=topic or "")

    # -- back-pressure

    def _pause_and_resume(self) -> None:
        """Full hands are waited for a moment: pausing throws away what is prefetched, so it is for those that stay full."""
        full = {self._type(place) for place in self._mine - self._paused if self._is_full(place)}
        full = {name for name in full if not self._pace.holds(name)}
        if full:
            self._in_hand.wait_for_room(full, ROOM_WITHIN)
        pause, resume = [], []
        for place in self._mine:
            paused = place in self._paused
            is_full = self._is_full(place) or self._pace.holds(self._type(place))
            if is_full and not paused:
                pause.append(place)
            elif paused and not is_full:
                resume.append(place)
        if pause:
            self.consumer.pause([TopicPartition(*place) for place in pause])
            self._paused.update(pause)
            log(LogEvent.PARTITIONS_PAUSED, count=len(pause))
        if resume:
            self.consumer.resume([TopicPartition(*place) for place in resume])
            self._paused.difference_update(resume)
            log(LogEvent.PARTITIONS_RESUMED, count=len(resume))

    def _is_full(self, place: Place) -> bool:
        return self._in_hand.full(self._type(place), place, paused=place in self._paused)

    def _type(self, place: Place) -> str:
        return self._topics[place[0]][0]

    # -- commits

    def _commit(self) -> None:
        now = time.monotonic()
        if now - self._committed_at < COMMIT_EVERY:
            return
        moved = self._in_hand.committable()
        if not moved:
            return
        self._committed_at = now
        self._acknowledgements.issued(moved)
        failpoint("worker.before_commit")
        self.consumer.commit(offsets=_offsets(moved), asynchronous=True)

    def _commit_now(self, moved: Sequence[Committable]) -> None:
        """Synchronously, for as long as librdkafka tries; where it fails the records come again, which is harmless."""
        if not moved:
            return
        self._acknowledgements.issued(moved)
        self.on_commit(None, self.consumer.commit(offsets=_offsets(moved), asynchronous=False) or [])

    def on_commit(self, error: KafkaError | None, places: Sequence[TopicPartition]) -> None:
        """The broker's answer to a commit, in whichever order: librdkafka calls this from `consume`."""
        failpoint("worker.after_commit")
        for each in places:
            failed = error or each.error
            if failed is None:
                self._acknowledgements.committed((each.topic, each.partition), each.offset)
            else:
                self._in_hand.commit_failed((each.topic, each.partition))
                alarm(LogEvent.COMMIT_FAILED, topic=each.topic, partition=each.partition, error_code=failed.name())

    # -- rebalance

    def _on_assign(self, consumer: Any, partitions: Sequence[TopicPartition]) -> None:
        places = [(each.topic, each.partition) for each in partitions]
        self._in_hand.assign(places)
        self._mine.update(places)
        self._paused.difference_update(places)  # a new assignment is not paused
        log(LogEvent.PARTITIONS_ASSIGNED, count=len(places))

    def _on_revoke(self, consumer: Any, partitions: Sequence[TopicPartition]) -> None:
        """Take nothing more of them, let what is begun finish within its grace, and commit before the next owner begins."""
        places = {(each.topic, each.partition) for each in partitions}
        self._in_hand.revoke(places, 0 if self._stopping.is_set() else self._pace.grace)
        try:
            self._commit_now(self._in_hand.committable(places))
        except KafkaException as error:
            alarm(LogEvent.COMMIT_FAILED, error_code=_code(error))
        self._gone(places)

    def _on_lost(self, consumer: Any, partitions: Sequence[TopicPartition]) -> None:
        """Somebody else may own them already: nothing can be committed."""
        self._gone({(each.topic, each.partition) for each in partitions})

    def _gone(self, places: set[Place]) -> None:
        self._in_hand.revoke(places, 0)
        self._in_hand.forget(places)
        self._acknowledgements.forget(places)
        self._mine -= places
        self._paused -= places
        log(LogEvent.PARTITIONS_REVOKED, count=len(places))


def _offsets(moved: Sequence[Committable]) -> list[TopicPartition]:
    return [TopicPartition(each.place[0], each.place[1], each.position) for each in moved]


def _code(error: BaseException) -> str:
    cause = error.args[0] if error.args else None
    return cause.name() if isinstance(cause, KafkaError) else ""
