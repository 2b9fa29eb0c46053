"""Sends the three operations their ways: a relay, a worker that is killed before its commit, the one that comes after it.

It waits on what the ledger, a failpoint's file or the topics say, with a deadline, and never on time passing.
"""

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson
from confluent_kafka import Consumer, TopicPartition
from sqlalchemy import Engine

from counterfoil import OperationId, enqueue, status
from counterfoil.core.roads import DEAD_LETTER, TO_WORKERS, road_of, topic_of
from counterfoil.core.states import FINAL, State
from counterfoil.demo.processes import Process, environment, run
from counterfoil.demo.ready.checks import OnTopics
from counterfoil.demo.ready.declared import BUSY, CRM_URL, INVALID, OPERATIONS, Customer, sync_customer
from counterfoil.demo.stage import drop_topics, own_database, own_folder
from counterfoil.ledger.engine import ledger_engine
from counterfoil.ledger.migrate import initialise
from counterfoil.parts import kafka
from counterfoil.schemas.envelope import parse_command, parse_dead_letter
from counterfoil.sinks.fake import Behaviour, FakeSink, Plan, Rule
from counterfoil.sinks.journal import Entry
from counterfoil.streams.worker.consumer import group_of

WITHIN = 90.0  #: seconds for any one thing to come about
KILL_AT = "worker.before_commit"
FAILURES = 2  #: answers of "later" before the CRM takes the second operation
REFUSED_FOR_GOOD = Rule(Behaviour.REJECT, entity=INVALID)
LATER = Rule(Behaviour.RATE_LIMIT, entity=BUSY, calls=tuple(range(1, FAILURES + 1)), seconds=1)


class Overdue(RuntimeError):
    """Something did not come about in time; the text names it."""


@dataclass
class Road:
    """The parts of one run, and its processes."""

    folder: Path
    ledger: str
    engine: Engine
    crm: FakeSink
    settings: dict[str, str]
    brokers: str
    _started: list[Process] = field(default_factory=list)

    def start(self, command: str, failpoint: str = "") -> Process:
        """A relay or a worker; with `failpoint`, one that is killed there the first time it passes."""
        armed = {"COUNTERFOIL_FAILPOINTS": failpoint, "COUNTERFOIL_FAILPOINTS_DIR": str(self.folder)} if failpoint else {}
        self._started.append(Process(f"{command}-{len(self._started) + 1}", [command], self.folder, {**self.settings, **armed}))
        return self._started[-1]

    def end(self) -> None:
        """SIGTERM to what still runs, the workers first."""
        for one in reversed(self._started):
            one.stop()

    def enqueue(self, customer: str) -> OperationId:
        """One operation of that customer, in a transaction of its own."""
        with self.engine.begin() as connection:
            return enqueue(connection, sync_customer, Customer(customer, 1, f"{customer}@shop.example"))

    def state(self, operation: OperationId) -> State:
        with self.engine.connect() as connection:
            return status(connection, operation).state

    def comes_to_rest(self, operation: OperationId) -> None:
        """Wait until it is final or quarantined."""
        self.until(lambda: self.state(operation) in FINAL | {State.QUARANTINED, State.SUCCEEDED}, f"the end of {operation}")

    def until(self, condition: Callable[[], object], what: str) -> None:
        """Wait for it; a process that ended by itself ends the wait too."""
        deadline = time.monotonic() + WITHIN
        while not condition():
            for one in self._started:
                one.must_run()
            if time.monotonic() > deadline:
                raise Overdue(f"{what} did not come about within {WITHIN:g} s: see the logs in {self.folder}")
            threading.Event().wait(0.05)

    def shown(self, operation: OperationId, until: Callable[[dict[str, Any]], bool] = bool) -> dict[str, Any]:
        """What `operations show --json` prints, once it is as asked or as it stays."""
        seen: dict[str, Any] = {}

        def look() -> bool:
            command = [sys.executable, "-m", "counterfoil", "operations", "show", str(operation), "--json"]
            done = subprocess.run(command, env=environment(self.settings), cwd=self.folder, capture_output=True, check=True)
            seen.clear()
            seen.update(orjson.loads(done.stdout))
            return until(seen)

        deadline = time.monotonic() + 20
        while not look() and time.monotonic() < deadline:
            threading.Event().wait(0.2)
        return seen

    def journal(self, operation: OperationId) -> list[Entry]:
        return [entry for entry in self.crm.entries() if entry.operation == str(operation)]

    def all_passed(self) -> bool:
        """Whether the group has committed past every record."""
        topics = [topic_of(self.ledger, road_of(kind, one.name)) for one in OPERATIONS for kind in TO_WORKERS]
        with _reader(self.brokers, group_of(self.ledger)) as reader:
            places = [TopicPartition(topic, 0) for topic in topics]
            ends = {place.topic: reader.get_watermark_offsets(place, timeout=10)[1] for place in places}
            return all(max(place.offset, 0) >= ends[place.topic] for place in reader.committed(places, timeout=10))

    def on_topics(self, operation: OperationId, marker: OperationId) -> OnTopics:
        """Where their records are, read from the topics' beginnings to their ends."""
        places: dict[str, list[tuple[str, int, int]]] = {str(operation): [], str(marker): []}
        letters = 0
        letter_topic = topic_of(self.ledger, DEAD_LETTER)
        topics = [topic_of(self.ledger, road_of(kind, one.name)) for one in OPERATIONS for kind in TO_WORKERS]
        for record in self._records([*topics, letter_topic]):
            if record.topic() == letter_topic:
                letters += _is_letter_of(record.headers() or (), operation)
                continue
            named = str(parse_command(record.headers()).operation_id)
            if named in places:
                places[named].append((record.topic(), record.partition(), record.offset()))
        return OnTopics(places[str(operation)], places[str(marker)][0], letters)

    def _records(self, topics: list[str]) -> Iterator[Any]:
        for topic in topics:
            with _reader(self.brokers, f"{self.ledger}-ready") as reader:
                low, high = reader.get_watermark_offsets(TopicPartition(topic, 0), timeout=10)
                reader.assign([TopicPartition(topic, 0, low)])
                deadline = time.monotonic() + WITHIN
                while reader.position([TopicPartition(topic, 0)])[0].offset < high and low < high:
                    yield from reader.consume(100, 0.2)
                    if time.monotonic() > deadline:
                        raise Overdue(f"the end of {topic} was not reached within {WITHIN:g} s")


@contextmanager
def road(database: str | None, brokers: str | None) -> Iterator[Road]:
    """All parts, with an empty ledger and its topics; everything of it is gone at the end."""
    with ExitStack() as parts:
        folder = parts.enter_context(own_folder())
        name = f"ready-{folder.name.rpartition('-')[2].lower().replace('_', '')}"
        url = parts.enter_context(own_database(database, name))
        address = brokers or parts.enter_context(kafka()).bootstrap
        crm = parts.enter_context(FakeSink.started(folder, Plan(rules=(REFUSED_FOR_GOOD, LATER))))
        initialise(url, ledger=name)
        settings = _settings(name, url, address) | {CRM_URL: crm.url}
        run(["topics", "apply"], folder, settings)
        parts.callback(drop_topics, address, name, OPERATIONS)
        engine = ledger_engine(url, pool_size=2)
        parts.callback(engine.dispose)
        made = Road(folder, name, engine, crm, settings, address)
        parts.callback(made.end)
        yield made


def _settings(ledger: str, database: str, brokers: str) -> dict[str, str]:
    chosen = {
        "ledger": ledger,
        "database": database,
        "operations": "counterfoil.demo.ready.declared:OPERATIONS",
        "brokers": brokers,
        "topic_partitions": "1",  # one road, so that the marker is behind
        "topic_replication": "1",
        "lease": "3s",
        "send_grace": "1s",
        "due_every": "0.2s",
        "resend_after": "10s",
        "shutdown_grace": "5s",
        "relay_lease": "3s",
        "relay_delivery_timeout": "5s",
        "kafka": '{"session.timeout.ms": "6000", "heartbeat.interval.ms": "1000"}',
    }
    return {f"COUNTERFOIL_{name.upper()}": value for name, value in chosen.items()}


def _is_letter_of(headers: Any, operation: OperationId) -> bool:
    """The gate's write check lies on that topic too, and has no cause."""
    named = dict(headers)
    return "cf_cause" in named and parse_dead_letter(headers).operation_id == operation


@contextmanager
def _reader(brokers: str, group: str) -> Iterator[Consumer]:
    reader = Consumer({"bootstrap.servers": brokers, "group.id": group, "enable.auto.commit": False})
    try:
        yield reader
    finally:
        reader.close()
