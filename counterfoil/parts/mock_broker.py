"""librdkafka's mock cluster for the demo: no Java, no topic settings, no compaction. Never used for a claim about Kafka."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from confluent_kafka import Producer


@contextmanager
def mock_broker(*, brokers: int = 1) -> Iterator[str]:
    """The bootstrap address of a cluster that lives inside this process; other processes of this machine can use it.

    Topics appear with 4 partitions on first use, and records beyond 5 MB a partition are dropped.
    """
    cluster = Producer({"bootstrap.servers": "127.0.0.1:9", "test.mock.num.brokers": brokers, "log_level": 2})
    nodes = cluster.list_topics(timeout=10).brokers.values()
    yield ",".join(f"{node.host}:{node.port}" for node in nodes)
    cluster.flush(0)
