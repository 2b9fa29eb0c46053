"""Watches a worker from inside: the broker answers, every partition gets on, and not too many calls are lost.

A worker that finds itself useless says so and leaves, so that whoever supervises it can start another (L6, D28, D32, D34).
It blocks its thread, has a client of its own and never touches a record.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

from confluent_kafka import Consumer, KafkaException, TopicPartition

from counterfoil.core.events import LogEvent
from counterfoil.streams.lifeline import Line
from counterfoil.streams.worker.in_hand import InHand
from counterfoil.streams.worker.progress import Place, Progress, Seen
from counterfoil.telemetry import alarm

#: Seconds to wait for the broker's answer to a question.
ANSWER_WITHIN = 5.0


class BrokerWatch:
    """Whether any broker answers, and since when none does."""

    def __init__(self, consumer: Consumer, topic: str, stop_after: float) -> None:
        self._consumer = consumer
        self._topic = topic
        self._stop_after = stop_after
        self.line = Line("broker")

    def look(self) -> None:
        """Ask, and wait for the answer."""
        self.line.asked()
        try:
            self._consumer.list_topics(self._topic, timeout=ANSWER_WITHIN)
        except (KafkaException, RuntimeError) as error:
            self.line.bad(type(error).__name__)
        else:
            self.line.good()

    def gone(self) -> bool:
        """Whether none has answered for too long."""
        return self.line.lost_for > self._stop_after


class Patience(NamedTuple):
    """How long the partitions of a topic may stand still, by topic, in seconds; and whether one does so by order."""

    of: Mapping[str, float]
    excuses: Callable[[str], bool]  #: paused, its sink down, or not this worker's turn there

    @property
    def shortest(self) -> float:
        return min(self.of.values())


class ProgressWatch:
    """Whether every partition that has lag gets on."""

    def __init__(self, consumer: Consumer, in_hand: InHand, patience: Patience) -> None:
        self._consumer = consumer
        self._in_hand = in_hand
        self.patience = patience
        self._progress = Progress()
        self._base: dict[Place, int] = {}  # where a partition stood before anything was finished

    def look(self) -> list[Place]:
        """The partitions that stand still. Those that do so by order, or that the broker says nothing about, are left out."""
        positions = self._in_hand.positions()
        self._base = {place: at for place, at in self._base.items() if place in positions}
        seen: dict[Place, Seen] = {}
        for place, (position, finished) in positions.items():
            if self.patience.excuses(place[0]):
                continue
            try:
                low, end = self._consumer.get_watermark_offsets(TopicPartition(*place), timeout=ANSWER_WITHIN)
                at = position if position is not None else self._beginning(place, low)
            except (KafkaException, RuntimeError):
                continue
            seen[place] = Seen(at, end, finished, self.patience.of[place[0]])
        stuck = self._progress.look(time.monotonic(), seen)
        for topic, partition in stuck:
            alarm(LogEvent.NO_PROGRESS, topic=topic, partition=partition)
        return stuck

    def _beginning(self, place: Place, low: int) -> int:
        if place not in self._base:
            committed = self._consumer.committed([TopicPartition(*place)], timeout=ANSWER_WITHIN)[0].offset
            self._base[place] = max(committed, low)
        return self._base[place]
