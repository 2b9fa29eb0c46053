"""The relay's look at its topics, at the start and periodically, in a thread of its own; and the gate before the dead letters.

A topic that is wrong shuts its own road and raises an alarm; its rows wait in SQL and nothing is lost (D13, D67). The dead-letter
topic must also take a marked record. Nothing is ever created here.
"""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from confluent_kafka import KafkaException
from sqlalchemy import Engine, exc

from counterfoil.core.events import LogEvent
from counterfoil.core.operation_type import Operations
from counterfoil.core.reasons import Reason
from counterfoil.core.roads import DEAD_LETTER
from counterfoil.ledger.partition_counts import accepted_partitions
from counterfoil.streams.lifeline import Line
from counterfoil.streams.roads import Roads
from counterfoil.streams.topics.admin import TopicAdmin
from counterfoil.streams.topics.plan import Look, accept, look
from counterfoil.streams.topics.wishes import Choice, Flaw
from counterfoil.telemetry import alarm, log

SOON = 2.0  #: seconds between looks while something is wrong
CHECKED_EVERY = 3600.0  #: seconds between write checks of a dead-letter topic that is good


@dataclass
class Gate:
    """Looks, says what it saw once each time it changes, and tells the roads. `opened` is called when a road opened."""

    admin: TopicAdmin
    choice: Choice
    operations: Operations
    roads: Roads
    engine: Engine
    line: Line
    every: float
    opened: Callable[[], None]
    ready: bool = False  #: every topic that matters is good
    _said: dict[tuple[str, str], Flaw] = field(default_factory=dict)
    _missing_said: frozenset[str] = frozenset()
    _checked_at: float | None = None
    _wake: threading.Event = field(default_factory=threading.Event)
    _leaving: bool = False

    def start(self) -> None:
        threading.Thread(target=self._run, name="topic-gate", daemon=True).start()

    def look_soon(self) -> None:
        """Something failed that a look may explain."""
        self._wake.set()

    def leave(self) -> None:
        self._leaving = True
        self._wake.set()

    def _run(self) -> None:
        while not self._leaving:
            good = self.look_once()
            self._wake.wait(self.every if good else min(SOON, self.every))
            if self._wake.is_set() and not self._leaving:
                self._wake.clear()
                # A failing send must not make this a busy loop.
                time.sleep(min(0.5, self.every))

    def look_once(self) -> bool:
        """One look; answers whether all that matters is good."""
        self.line.asked()
        try:
            accepted = self._accepted()
            seen = look(self.admin, self.choice, self.operations, accepted or {})
        except KafkaException as error:
            self.line.bad(error.args[0].name() if error.args else "KafkaException")
            return False
        self.line.good()
        self._say(seen.flaws)
        shut = {wish.road: Reason.TOPIC_WRONG for wish in seen.wanted for flaw in seen.flaws if _shuts(flaw, wish.name)}
        if not self._dead_letters_good(seen):
            shut.setdefault(DEAD_LETTER, Reason.BROKER_REFUSED)
        if accepted is not None:
            self._accept(seen, accepted)
        if self.roads.verified(seen.known, shut):
            self.opened()
        self._say_missing()
        self.ready = not shut and not self.roads.missing and not any(flaw.serious for flaw in seen.flaws)
        return self.ready

    def _dead_letters_good(self, seen: Look) -> bool:
        """The marked write check, at the start, after trouble and each hour."""
        topic = self.roads.topic(DEAD_LETTER)
        if any(_shuts(flaw, topic) for flaw in seen.flaws) or topic not in seen.known:
            self._checked_at = None
            return topic not in seen.known  # a missing topic is shut already
        now = time.monotonic()
        if self._checked_at is None or now - self._checked_at > CHECKED_EVERY:
            if not self.admin.write_check(topic):
                alarm(LogEvent.TOPIC_WRONG, topic=topic, reason=Reason.BROKER_REFUSED, kind="write_check")
                self._checked_at = None
                return False
            self._checked_at = now
        return True

    def _say(self, flaws: list[Flaw]) -> None:
        """Each flaw once when it appears, and once more when it is gone."""
        now = {(flaw.topic, flaw.code): flaw for flaw in flaws}
        for key in now.keys() - self._said.keys():
            flaw = now[key]
            if flaw.code == "missing":
                alarm(LogEvent.TOPIC_MISSING, topic=flaw.topic, reason=Reason.TOPIC_MISSING)
            else:
                alarm(LogEvent.TOPIC_WRONG, topic=flaw.topic, kind=flaw.code, reason=Reason.TOPIC_WRONG)
        for topic, code in self._said.keys() - now.keys():
            log(LogEvent.TOPIC_GOOD, topic=topic, kind=code)
        self._said = now

    def _say_missing(self) -> None:
        """Topics that rows wait for and that no installed type has."""
        declared = {topic for topic, code in self._said if code == "missing"}
        missing = self.roads.missing - declared
        for topic in missing - self._missing_said:
            alarm(LogEvent.TOPIC_MISSING, topic=topic, reason=Reason.TOPIC_MISSING)
        for topic in self._missing_said - missing - declared:
            log(LogEvent.TOPIC_GOOD, topic=topic, kind="missing")
        self._missing_said = missing

    def _accepted(self) -> dict[str, int] | None:
        """The accepted counts; None while the database is away, which is not this thread's trouble."""
        try:
            with self.engine.connect() as connection:
                return accepted_partitions(connection)
        except (exc.DBAPIError, exc.TimeoutError):
            return None

    def _accept(self, seen: Look, accepted: dict[str, int]) -> None:
        fresh = {name: topic.partitions for name, topic in seen.there.items() if name not in accepted}
        if fresh:
            try:
                accept(self.engine, fresh)
            except (exc.DBAPIError, exc.TimeoutError):
                return


def _shuts(flaw: Flaw, topic: str) -> bool:
    """A serious flaw shuts its topic's road; a missing topic is shut by not being known."""
    return flaw.topic == topic and flaw.serious and flaw.code != "missing"
