"""The consumer of a worker together with those who use it: its callbacks find them by name, since it is made first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from confluent_kafka import Consumer, KafkaError, TopicPartition

from counterfoil.ledger.names import Ledger
from counterfoil.settings import Settings
from counterfoil.streams.worker.acknowledging import Acknowledgements
from counterfoil.streams.worker.consumer import command_consumer, watching_consumer
from counterfoil.streams.worker.gates import Gates
from counterfoil.streams.worker.in_hand import InHand
from counterfoil.streams.worker.ingest import Ingest, Pace
from counterfoil.streams.worker.watch import BrokerWatch


class Hands(NamedTuple):
    """What the consumer fills and empties."""

    in_hand: InHand
    acknowledgements: Acknowledgements


def consuming(
    settings: Settings,
    ledger: Ledger,
    topics: Mapping[str, tuple[str, str]],
    gates: Gates,
    hands: Hands,
) -> tuple[Ingest, Consumer, BrokerWatch]:
    """The consumer behind its ingest, and a second one that only asks."""
    made: dict[str, Any] = {}

    def on_commit(error: KafkaError | None, places: Sequence[TopicPartition]) -> None:
        made["ingest"].on_commit(error, places)

    def on_error(error: KafkaError) -> None:
        if error.code() == KafkaError._ALL_BROKERS_DOWN:
            made["broker"].line.bad(error.name())

    consumer = command_consumer(
        ledger.name,
        settings.brokers,
        settings.kafka,
        settings.group_protocol,
        on_commit,
        on_error,
    )
    wait, grace = settings.consume_wait.total_seconds(), settings.shutdown_grace.total_seconds()
    pace = Pace(settings.batch, wait, grace, gates.holds)
    ingest = made["ingest"] = Ingest(consumer, topics, hands.in_hand, hands.acknowledgements, pace)
    watcher = watching_consumer(ledger.name, settings.brokers, settings.kafka)
    broker = made["broker"] = BrokerWatch(watcher, next(iter(topics)), settings.stop_after.total_seconds())
    return ingest, watcher, broker
