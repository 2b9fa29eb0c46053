"""The consumer of command records, with the settings that the worker's promises rest on; an installation may not change those."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from confluent_kafka import Consumer, KafkaError, TopicPartition

from counterfoil.telemetry import library_logger

#: An installation's own `kafka` settings win over these.
FIRST_VALUES: Mapping[str, Any] = {
    "queued.max.messages.kbytes": 16_384,  # the bound of what librdkafka keeps beside our own
    "fetch.wait.max.ms": 100,
    "topic.metadata.refresh.interval.ms": 10_000,  # how soon a topic that was missing is seen
    "reconnect.backoff.max.ms": 2_000,
}
#: A member that died is replaced after this; with KIP-848 the brokers say.
CLASSIC: Mapping[str, Any] = {
    "group.protocol": "classic",
    "partition.assignment.strategy": "cooperative-sticky",
    "session.timeout.ms": 10_000,
    "heartbeat.interval.ms": 3_000,
}
#: What the promises rest on.
ALWAYS: Mapping[str, Any] = {
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "auto.offset.reset": "earliest",
    "isolation.level": "read_committed",
    "enable.partition.eof": True,  # an end is told, so that control records at it are passed too
    "allow.auto.create.topics": False,
}

OnCommit = Callable[[KafkaError | None, Sequence[TopicPartition]], None]


def group_of(ledger: str) -> str:
    """The one group of a ledger's workers."""
    return f"{ledger}.workers"


def watching_consumer(ledger: str, brokers: str, kafka: Mapping[str, str]) -> Consumer:
    """For questions about topics and offsets; it never subscribes.

    A client of its own, because a call from another thread waits until `consume` is left, which in a loop may be never.
    """
    must = {"bootstrap.servers": brokers, "group.id": group_of(ledger), "client.id": "counterfoil-worker-watch"}
    never = {"enable.auto.commit": False, "allow.auto.create.topics": False}
    return Consumer({"reconnect.backoff.max.ms": 2_000, **kafka, **never, **must}, logger=library_logger("librdkafka"))


def command_consumer(
    ledger: str,
    brokers: str,
    kafka: Mapping[str, str],
    protocol: Literal["classic", "consumer"],
    on_commit: OnCommit,
    on_error: Callable[[KafkaError], None],
) -> Consumer:
    """Not yet subscribed. `on_commit` and `on_error` are called from its `consume`."""
    chosen = CLASSIC if protocol == "classic" else {"group.protocol": "consumer"}
    settings = {
        **FIRST_VALUES,
        **chosen,
        **kafka,
        **ALWAYS,
        "bootstrap.servers": brokers,
        "group.id": group_of(ledger),
        "client.id": "counterfoil-worker",
        "on_commit": on_commit,
        "error_cb": on_error,
    }
    return Consumer(settings, logger=library_logger("librdkafka"))
