"""Which roads out of the outbox are closed for now.

A closed road delays its own rows only, and is tried again after a wait that doubles; nothing here sends, and a row is never given
up for its road. Their names are core's.
"""

from collections.abc import Collection

from counterfoil.core.reasons import Reason
from counterfoil.core.roads import topic_of

FIRST_WAIT, LONGEST_WAIT = 0.25, 30.0  #: seconds


class Roads:
    """What is known of the topics. Not `verified` (embedded): every road is open until a send fails."""

    def __init__(self, ledger: str, *, verified: bool = True) -> None:
        self.ledger = ledger
        self._topics: dict[str, str] = {}
        self._known: frozenset[str] | None = frozenset() if verified else None
        self._shut: dict[str, Reason] = {}  #: closed by a verification
        self._again: dict[str, tuple[float, float]] = {}  #: road -> when it may be tried again, and the next wait
        self.missing: frozenset[str] = frozenset()  #: topics that rows wait for

    def topic(self, road: str) -> str:
        """The road's topic."""
        topic = self._topics.get(road)
        if topic is None:
            topic = self._topics[road] = topic_of(self.ledger, road)
        return topic

    def verified(self, known: Collection[str], shut: dict[str, Reason]) -> bool:
        """What a look at the broker found; answers whether a road opened: then what waits for it is read again."""
        before, was_shut = self._known or frozenset(), self._shut
        self._known, self._shut = frozenset(known), dict(shut)
        self.missing -= self._known
        return bool(self._known - before) or any(road not in shut for road in was_shut)

    def shut(self, road: str, topic: str) -> Reason | None:
        """Why the road to this topic is closed until the next verification, or None."""
        if self._known is not None and topic not in self._known:
            self._topics[road] = topic
            self.missing |= {topic}
            return Reason.TOPIC_MISSING
        return self._shut.get(road)

    def close(self, road: str, now: float) -> float:
        """Something failed on this road: leave it for a while; answers how long. Within a wait it stays as it is."""
        until, wait = self._again.get(road, (0.0, FIRST_WAIT))
        if now < until:
            return until - now
        self._again[road] = (now + wait, min(2 * wait, LONGEST_WAIT))
        return wait

    def delivered(self, road: str) -> None:
        """Something arrived: the next failure waits the shortest time again."""
        if self._again:
            self._again.pop(road, None)

    def closed(self, now: float) -> list[str]:
        """The roads that must not be read now: their rows stay where they are."""
        waiting = [road for road, (until, _) in self._again.items() if now < until]
        absent = [] if self._known is None else [road for road, topic in self._topics.items() if topic not in self._known]
        return sorted({*waiting, *absent, *self._shut})

    def forget(self, road: str) -> None:
        """Treat the road's topic as not there until it is verified again."""
        if self._known is not None:
            self._known -= {self.topic(road)}
            self.missing |= {self.topic(road)}
