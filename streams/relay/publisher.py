"""The producer, and what its delivery reports mean.

A row is in the topic when its own report says so, and only then: a time-out is unknown, never a failure. Reports are only put
on a list while the producer polls; nobody waits in a callback, and none of them calls the producer.
"""

from collections.abc import Mapping
from datetime import timedelta
from enum import Enum
from functools import partial
from typing import Any, Generic, NamedTuple, TypeVar

from confluent_kafka import KafkaError, KafkaException, Producer

from counterfoil.core.reasons import Reason
from counterfoil.schemas.envelope import Headers
from counterfoil.telemetry import library_logger

R = TypeVar("R")


class Fate(Enum):
    """What a delivery report says of a row."""

    DELIVERED = "delivered"
    UNKNOWN = "unknown"  #: it may be in the topic: sent again with the same ids
    NOT_SENT = "not_sent"  #: certainly not in the topic; later may differ
    NO_ROAD = "no_road"  #: the topic is missing or closed to us: waits, with an alarm
    NEVER = "never"  #: the broker will not take it; retried alone before it is believed (D08)
    BROKEN = "broken"  #: this producer is of no use any more: the process must end


_NEVER: Mapping[int, Reason] = {
    KafkaError.MSG_SIZE_TOO_LARGE: Reason.MESSAGE_TOO_LARGE,
    KafkaError.RECORD_LIST_TOO_LARGE: Reason.MESSAGE_TOO_LARGE,
    KafkaError.INVALID_RECORD: Reason.BROKER_REFUSED,
    KafkaError.INVALID_TIMESTAMP: Reason.BROKER_REFUSED,
}
_NO_ROAD: Mapping[int, Reason] = {
    KafkaError.UNKNOWN_TOPIC_OR_PART: Reason.TOPIC_MISSING,
    KafkaError._UNKNOWN_TOPIC: Reason.TOPIC_MISSING,
    KafkaError._UNKNOWN_PARTITION: Reason.TOPIC_MISSING,
    KafkaError.TOPIC_EXCEPTION: Reason.TOPIC_MISSING,
    KafkaError.TOPIC_AUTHORIZATION_FAILED: Reason.BROKER_REFUSED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED: Reason.BROKER_REFUSED,
}
_NOT_SENT = frozenset({KafkaError._PURGE_QUEUE, KafkaError._QUEUE_FULL})


def fate_of(error: KafkaError | None) -> tuple[Fate, Reason | None]:
    """Sort a delivery report. Whatever nobody has sorted is unknown."""
    if error is None:
        return Fate.DELIVERED, None
    code = error.code()
    if code in _NEVER:
        return Fate.NEVER, _NEVER[code]
    if code in _NO_ROAD:
        return Fate.NO_ROAD, _NO_ROAD[code]
    if code in _NOT_SENT:
        return Fate.NOT_SENT, Reason.DELIVERY_UNKNOWN
    if error.fatal() or code == KafkaError._FATAL:
        return Fate.BROKEN, Reason.DELIVERY_UNKNOWN
    return Fate.UNKNOWN, Reason.DELIVERY_UNKNOWN


class Sending(NamedTuple):
    """What a producer needs to know of an installation."""

    brokers: str
    client: Mapping[str, str]  #: further properties, by librdkafka's names; ours win
    delivery_timeout: timedelta
    message_bytes: int  #: largest record that the client hands on; the topic's own limit is the broker's business


class Publisher(Generic[R]):
    """A producer for rows. One thread sends and polls; a full queue is an answer, not a wait."""

    def __init__(self, sending: Sending, *, one_by_one: bool = False) -> None:
        self._reports: list[tuple[R, KafkaError | None, int, int]] = []
        self.fatal = False  #: only a new producer is of use
        self.brokers_down = False  #: the client said so since this was last set back
        self._producer = Producer(
            producer_settings(sending, one_by_one=one_by_one), error_cb=self._trouble, logger=library_logger("librdkafka")
        )

    def send(self, topic: str, key: bytes | None, value: bytes | None, headers: Headers, row: R) -> Fate | None:
        """Hand a row over; its report comes later. NOT_SENT: the queue is full, poll first. NEVER: too large for any batch."""
        try:
            self._producer.produce(
                topic,
                value,
                key,
                headers=headers,  # type: ignore[arg-type]  # a list of pairs, read only
                on_delivery=partial(self._reported, row),
            )
        except BufferError:
            return Fate.NOT_SENT
        except KafkaException as error:
            return fate_of(error.args[0])[0]
        return None

    def poll(self, seconds: float) -> None:
        """Let reports come in for at most so long; returns at the first."""
        self._producer.poll(seconds)

    def reports(self) -> list[tuple[R, KafkaError | None, int, int]]:
        """The reports that came since the last call: the row as it was handed in, error, partition, offset."""
        taken, self._reports = self._reports, []
        return taken

    def drop_queued(self) -> None:
        """Give up what has not left yet: it is reported as not sent."""
        self._producer.purge(in_queue=True, in_flight=False, blocking=True)

    def __len__(self) -> int:
        return len(self._producer)

    def _reported(self, row: R, error: KafkaError | None, message: Any) -> None:
        self._reports.append((row, error, message.partition(), message.offset()))

    def _trouble(self, error: KafkaError) -> None:
        self.fatal = self.fatal or error.fatal()
        self.brokers_down = self.brokers_down or error.code() == KafkaError._ALL_BROKERS_DOWN


def producer_settings(sending: Sending, *, one_by_one: bool = False) -> dict[str, str | int | bool]:
    """The client's properties. Keys land where Java clients put them (D19); nothing is ever created by sending to it."""
    timeout = max(1000, int(sending.delivery_timeout.total_seconds() * 1000))
    ours: dict[str, str | int | bool] = {
        "bootstrap.servers": sending.brokers,
        "enable.idempotence": True,
        "acks": "all",
        "partitioner": "murmur2_random",
        "compression.type": "lz4",
        "linger.ms": 1,
        "delivery.timeout.ms": timeout,
        "request.timeout.ms": min(10_000, timeout),
        "message.max.bytes": sending.message_bytes,
        "queue.buffering.max.messages": 100_000,
        "queue.buffering.max.kbytes": 65_536,
        "reconnect.backoff.max.ms": 1_000,
        "topic.metadata.propagation.max.ms": min(5_000, timeout),
        "socket.keepalive.enable": True,
        "client.id": "counterfoil-relay",
    }
    if one_by_one:
        ours |= {"batch.num.messages": 1, "linger.ms": 0}
    return {**sending.client, **ours}
