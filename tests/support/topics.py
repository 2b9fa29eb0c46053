"""The topics of one test's ledger on the shared broker: made, read back record by record, searched for secrets and dropped."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial

from confluent_kafka import Consumer, KafkaException, Message, TopicPartition
from confluent_kafka.cimpl import NewTopic

from counterfoil.parts import Kafka
from counterfoil.streams.worker.record import ASKED
from tests.support.planted import Planted
from tests.support.waiting import eventually


@dataclass
class Topics:
    """What is under one ledger's name on the broker."""

    kafka: Kafka
    ledger: str
    partitions: int = 4
    created: set[str] = field(default_factory=set)

    @property
    def bootstrap(self) -> str:
        """The broker's address."""
        return self.kafka.bootstrap

    def name(self, *parts: str) -> str:
        """`<ledger>.<part>.<part>`."""
        return ".".join((self.ledger, *parts))

    def make(self, *types: str) -> None:
        """The ledger's state and dead-letter topics, and the command and retry topics of the types."""
        wanted = {self.name("state"): {"cleanup.policy": "compact"}, self.name("dead-letters"): {"cleanup.policy": "delete"}}
        for each in types:
            wanted |= {self.name(each, "commands"): {}, self.name(each, "retry"): {}}
        self.create(wanted)

    def create(self, wanted: dict[str, dict[str, str]], *, partitions: int | None = None) -> None:
        """Make topics with these settings; returns when the broker lists them."""
        fresh = [
            NewTopic(name, num_partitions=partitions or self.partitions, replication_factor=1, config=settings)
            for name, settings in wanted.items()
            if name not in self.created
        ]
        if fresh:
            for done in self.kafka.admin().create_topics(fresh).values():
                done.result(15)
        self.created |= set(wanted)
        eventually(lambda: set(wanted) <= self.existing(), what="the new topics")

    def existing(self) -> set[str]:
        """Every topic of this ledger, whoever made it."""
        return {name for name in self.kafka.admin().list_topics(timeout=10).topics if name.startswith(f"{self.ledger}.")}

    def records(self, *topics: str) -> list[Message]:
        """Every record of the topics, partition by partition, from the beginning to where it ends now."""
        reader = Consumer(
            {
                "bootstrap.servers": self.bootstrap,
                "group.id": f"{self.ledger}-reader",
                "enable.auto.commit": False,
                "enable.partition.eof": False,
                "auto.offset.reset": "earliest",
            }
        )
        try:
            return _read(reader, topics)
        finally:
            reader.close()

    def committed(self, group: str, topic: str) -> dict[int, int]:
        """The group's committed offset of each partition that has one."""
        client = Consumer({"bootstrap.servers": self.bootstrap, "group.id": group})
        try:
            known = client.list_topics(topic, timeout=10).topics[topic].partitions
            places = client.committed([TopicPartition(topic, number) for number in known], timeout=10)
            return {place.partition: place.offset for place in places if place.offset >= 0}
        finally:
            client.close()

    def ends(self, topic: str) -> dict[int, int]:
        """The next offset of each partition."""
        client = Consumer({"bootstrap.servers": self.bootstrap, "group.id": f"{self.ledger}-reader"})
        try:
            known = client.list_topics(topic, timeout=10).topics[topic].partitions
            return {number: client.get_watermark_offsets(TopicPartition(topic, number), timeout=10)[1] for number in known}
        finally:
            client.close()

    def search(self, planted: Planted) -> None:
        """Search every header of every record for planted secrets."""
        existing = self.existing()
        for record in self.records(*existing) if existing else ():
            try:
                headers = ASKED(record) or []
            except SystemError:  # a name that is no UTF-8
                continue
            assert isinstance(headers, list)
            planted.saw(f"a header on {record.topic()}", [text for pair in headers for text in pair])

    def drop(self) -> None:
        """Delete every topic of this ledger."""
        existing = self.existing()
        if existing:
            for done in self.kafka.admin().delete_topics(list(existing)).values():
                done.result(15)


def _ends(reader: Consumer, place: TopicPartition) -> tuple[int, int] | None:
    """The first and the next offset; None while the partition of a new topic has no leader."""
    try:
        return reader.get_watermark_offsets(place, timeout=10)
    except KafkaException:
        return None


def _read(reader: Consumer, topics: Iterable[str]) -> list[Message]:
    places, ends = [], {}
    for topic in topics:
        for number in reader.list_topics(topic, timeout=10).topics[topic].partitions:
            look = partial(_ends, reader, TopicPartition(topic, number))
            low, high = eventually(look, what=f"the leader of {topic}")
            if high > low:
                places.append(TopicPartition(topic, number, low))
                ends[topic, number] = high
    if not places:
        return []
    reader.assign(places)
    found: list[Message] = []

    def complete() -> bool:
        for record in reader.consume(1000, timeout=0.1):
            assert record.error() is None, record.error()
            found.append(record)
        reached = reader.position(places)
        return all(place.offset >= ends[place.topic, place.partition] for place in reached)

    eventually(complete, within=30, what="the end of the topics")
    inside = [record for record in found if (record.offset() or 0) < ends[record.topic() or "", record.partition() or 0]]
    return sorted(inside, key=lambda record: (record.topic() or "", record.partition() or 0, record.offset() or 0))
