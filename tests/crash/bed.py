"""What all cells share: one database server, one broker, two sinks; and what each has of its own: a ledger, topics, processes."""

from __future__ import annotations

import secrets
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sqlalchemy import Engine, text

from counterfoil.ledger.engine import ledger_engine
from counterfoil.parts import FaultProxy, Kafka, Postgres, database_from_template, fault_proxy
from counterfoil.parts.template import LedgerDatabase
from counterfoil.sinks.fake import Behaviour, FakeSink, Plan
from counterfoil.sinks.fake.content import Nature
from tests.crash.declared import KEYED_URL, OPERATIONS, PLAIN_URL, TABLES
from tests.support.planted import Planted
from tests.support.processes import CommandLine
from tests.support.topics import Topics

PROGRAM = (sys.executable, "-m", "tests.crash.child")
#: Short enough for a cell, long enough for a busy machine.
SETTINGS = {
    "operations": "tests.crash.declared:OPERATIONS",
    "lease": "2s",
    "send_grace": "1s",
    "relay_lease": "2s",
    "relay_delivery_timeout": "3s",
    "relay_floor_every": "0.5s",
    "resend_after": "2s",
    "due_every": "0.2s",
    "shutdown_grace": "5s",
    "stop_after": "60s",
    "in_ledger_time": "5s",
    "topics_verified_every": "2s",
    "topic_replication": "1",
    "kafka": '{"session.timeout.ms": "3000", "heartbeat.interval.ms": "500"}',
}
MISBEHAVES = Plan(shares={Behaviour.SLOW: 0.2}, seconds=0.3)


class Restarts:
    """The broker is one for all cells: those of a wave wait for each other at their failpoints and get one restart."""

    def __init__(self, restart: Callable[[], None], wave: int) -> None:
        self._restart, self._left, self._arrived = restart, wave, 0
        self._news = threading.Condition()
        self._done = False

    def arrive(self) -> None:
        """This cell stands at its failpoint; returns when the broker is there again."""
        with self._news:
            self._arrived += 1
            if self._arrived == self._left:
                self._strike()
            self._news.wait_for(lambda: self._done, 120)
            assert self._done, "the broker was not restarted"

    def leave(self) -> None:
        """This cell will never stand there."""
        with self._news:
            self._left -= 1
            if self._arrived == self._left and self._arrived:
                self._strike()

    def _strike(self) -> None:
        self._restart()
        self._done = True
        self._news.notify_all()


@dataclass
class Bed:
    """One ledger, with everything that a cell looks at."""

    servers: Servers
    database: LedgerDatabase
    engine: Engine
    topics: Topics
    line: CommandLine
    proxy: FaultProxy  #: before the database, of the armed process alone

    @property
    def name(self) -> str:
        return self.database.ledger

    @property
    def armed_url(self) -> str:
        """The database as the armed process reaches it."""
        return self.servers.postgres.url_of(self.database.name, port=self.proxy.port)

    def one(self, query: str, **values: object) -> Any:
        with self.engine.connect() as connection:
            return connection.execute(text(query), values).scalar_one()


@dataclass
class Servers:
    """Shared by all cells."""

    postgres: Postgres
    kafka: Kafka
    keyed: FakeSink
    plain: FakeSink
    folder: Path
    planted: Planted
    _made: threading.Lock = field(default_factory=threading.Lock)  #: databases are copied one at a time

    @contextmanager
    def bed(self, *, partitions: int = 4, message_bytes: int | None = None) -> Iterator[Bed]:
        """A ledger of a cell's own with its topics. `message_bytes` is the longest command that its broker takes."""
        name = f"c{secrets.token_hex(5)}"
        with ExitStack() as stack:
            with self._made:
                database = stack.enter_context(database_from_template(self.postgres, renamed=name))
            engine = ledger_engine(database.url, pool_size=4)
            stack.callback(engine.dispose)
            with engine.begin() as connection:
                connection.execute(text(TABLES))
            topics = Topics(self.kafka, name, partitions)
            self._make(topics, message_bytes)
            stack.callback(topics.drop)
            proxy = stack.enter_context(fault_proxy(self.postgres.port))
            folder = self.folder / name
            folder.mkdir()
            line = CommandLine(folder, self.planted, dict(SETTINGS), program=PROGRAM)
            line.settings |= {"ledger": name, "database": database.url, "brokers": self.kafka.bootstrap}
            line.settings |= {"topic_partitions": str(partitions)}
            stack.callback(line.end_all)
            yield Bed(self, database, engine, topics, line, proxy)

    @property
    def where(self) -> dict[str, str]:
        """How a worker finds the sinks."""
        return {KEYED_URL: self.keyed.url, PLAIN_URL: self.plain.url}

    @staticmethod
    def _make(topics: Topics, message_bytes: int | None) -> None:
        kept = {"retention.ms": "-1"}
        short = kept | ({"max.message.bytes": str(message_bytes)} if message_bytes else {})
        wanted = {topics.name(each.name, road): short for each in OPERATIONS.types for road in ("commands", "retry")}
        wanted[topics.name("dead-letters")] = {**kept, "cleanup.policy": "delete", "max.message.bytes": "4000000"}
        wanted[topics.name("state")] = {"cleanup.policy": "compact"}
        topics.create(wanted)


@contextmanager
def servers(postgres: Postgres, kafka: Kafka, folder: Path, planted: Planted) -> Iterator[Servers]:
    """The sinks, beside servers that run already."""
    for each in ("keyed", "plain"):
        (folder / each).mkdir()
    with (
        FakeSink.started(folder / "keyed", MISBEHAVES) as keyed,
        FakeSink.started(folder / "plain", MISBEHAVES, Nature(keyed=False)) as plain,
    ):
        yield Servers(postgres, kafka, keyed, plain, folder, planted)
