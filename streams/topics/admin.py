"""Looking at topics on the brokers and making them, through Kafka's admin interface. Decides nothing.

Raises KafkaException where the brokers do not answer or refuse.
"""

import time
import uuid
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # exported, but not in a way that mypy counts
    AdminClient,
    AlterConfigOpType,
    ClusterMetadata,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)
from confluent_kafka.cimpl import NewTopic

from counterfoil.streams.topics.wishes import Seen, Wish
from counterfoil.telemetry import library_logger

ANSWER_WITHIN = 10.0  #: seconds
REFUSED_FOR = 2.0  #: seconds in which every broker refuses to be connected, until none is waited for any more
_CRITICAL = 2  #: of syslog: that a broker cannot be reached is told by the exception, without its address
CHECK_HEADER = "cf_check"  #: marks the record of a write check; readers pass it over


class TopicAdmin:
    """One admin client, kept: its futures fail once it is collected."""

    def __init__(self, brokers: str, client: Mapping[str, str]) -> None:
        self._settings: dict[str, str | int | float | bool] = {
            **client,
            "bootstrap.servers": brokers,
            "client.id": "counterfoil-topics",
        }
        self._refused = False
        heard: dict[str, Any] = {"error_cb": self._heard, "log_level": _CRITICAL}
        self._client = AdminClient(self._settings | heard, logger=library_logger("librdkafka"))

    def known(self) -> tuple[dict[str, Seen], int]:
        """Every topic of the cluster, without settings, and how many brokers it has. It creates nothing, whatever they allow."""
        cluster = self._cluster()
        there = {
            name: Seen(len(topic.partitions), min((len(part.replicas) for part in topic.partitions.values()), default=0))
            for name, topic in cluster.topics.items()
            if topic.error is None and topic.partitions
        }
        return there, len(cluster.brokers)

    def _cluster(self) -> ClusterMetadata:
        asked = time.monotonic()
        while True:
            try:
                return self._client.list_topics(timeout=REFUSED_FOR)
            except KafkaException:
                self._client.poll(0)  # hears why
                if self._refused or time.monotonic() - asked >= ANSWER_WITHIN:
                    raise

    def _heard(self, error: KafkaError) -> None:
        self._refused = self._refused or error.code() == KafkaError._ALL_BROKERS_DOWN

    def with_settings(self, there: Mapping[str, Seen], names: Collection[str]) -> dict[str, Seen]:
        """Those of the names that are there, with their settings where they may be seen."""
        mine = [name for name in names if name in there]
        if not mine:
            return {}
        asked = self._client.describe_configs(
            [ConfigResource(ResourceType.TOPIC, name) for name in mine], request_timeout=ANSWER_WITHIN
        )
        settings: dict[str, Mapping[str, str] | None] = {}
        for resource, future in asked.items():
            try:
                entries = future.result(ANSWER_WITHIN + 5)
            except KafkaException as error:
                if error.args[0].code() not in _NOT_SHOWN:
                    raise
                settings[resource.name] = None
            else:
                settings[resource.name] = {name: entry.value for name, entry in entries.items() if entry.value is not None}
        return {name: Seen(there[name].partitions, there[name].replication, settings.get(name)) for name in mine}

    def create(self, wanted: Iterable[Wish]) -> None:
        """Make these topics; one that somebody else has made meanwhile is left as it is."""
        fresh = [
            NewTopic(wish.name, num_partitions=wish.partitions, replication_factor=wish.replication, config=dict(wish.settings))
            for wish in wanted
        ]
        if not fresh:
            return
        for future in self._client.create_topics(fresh, request_timeout=ANSWER_WITHIN).values():
            try:
                future.result(ANSWER_WITHIN + 5)
            except KafkaException as error:
                if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                    raise

    def alter(self, changes: Mapping[str, Mapping[str, str]]) -> None:
        """Set these settings of these topics; every other one stays."""
        asked = [
            ConfigResource(
                ResourceType.TOPIC,
                topic,
                incremental_configs=[
                    ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET) for name, value in settings.items()
                ],
            )
            for topic, settings in changes.items()
            if settings
        ]
        if asked:
            for future in self._client.incremental_alter_configs(asked, request_timeout=ANSWER_WITHIN).values():
                future.result(ANSWER_WITHIN + 5)

    def write_check(self, topic: str) -> bool:
        """Whether a marked record without content arrives in this topic."""
        arrived: list[KafkaError | None] = []
        limits: dict[str, str | int | float | bool] = {
            "acks": "all",
            "delivery.timeout.ms": int(ANSWER_WITHIN * 1000),
            "message.send.max.retries": 2,
        }
        producer = Producer({**self._settings, **limits}, logger=library_logger("librdkafka"))
        headers: list[tuple[str, str | bytes | None]] = [(CHECK_HEADER, b"1")]
        producer.produce(topic, b"", uuid.uuid4().bytes, headers=headers, on_delivery=lambda error, _: arrived.append(error))
        producer.flush(ANSWER_WITHIN + 1)
        return arrived == [None]


_NOT_SHOWN = frozenset(
    {
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
        KafkaError.UNSUPPORTED_VERSION,
        KafkaError.UNKNOWN_TOPIC_OR_PART,
    }
)
