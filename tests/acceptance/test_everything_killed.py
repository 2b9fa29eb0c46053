"""Two relays and two workers under load, while each of them, the broker and the database are killed or stopped in turn."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import UUID

import pytest
from sqlalchemy import Engine, exc, text

from counterfoil import enqueue
from counterfoil.ledger.engine import ledger_engine
from counterfoil.ledger.migrate import initialise
from counterfoil.parts import Kafka, Postgres
from counterfoil.parts import kafka as running_kafka
from counterfoil.parts import postgres as running_postgres
from counterfoil.sinks.fake import Behaviour, FakeSink, Plan
from counterfoil.streams.worker.consumer import group_of
from examples.sync_customer import Customer
from examples.upsert_projection import Stock
from tests.support import invariants
from tests.support.killed_types import SINK_URL, push_customer, put_stock
from tests.support.planted import Planted
from tests.support.processes import CommandLine, Started
from tests.support.stock import STOCK_VIEW
from tests.support.topics import Topics
from tests.support.waiting import eventually

LEDGER = "killed"
SHORT = {
    "operations": "tests.support.killed_types:OPERATIONS",
    "lease": "2s",
    "send_grace": "1s",
    "relay_lease": "2s",
    "relay_delivery_timeout": "3s",
    "resend_after": "3s",
    "due_every": "0.2s",
    "shutdown_grace": "5s",
    "stop_after": "60s",
    "topic_partitions": "4",
    "topic_replication": "1",
}
MISBEHAVES = Plan(
    shares={
        Behaviour.ANSWER_LOST: 0.05,
        Behaviour.CUT: 0.05,
        Behaviour.ERROR_APPLIED: 0.05,
        Behaviour.RATE_LIMIT: 0.05,
        Behaviour.SLOW: 0.3,
    },
    seconds=1.0,
)


class Callers:
    """A thread of callers that keep their own history of what they enqueued."""

    def __init__(self, engine: Engine) -> None:
        self.ok: set[UUID] = set()
        self.failed: set[UUID] = set()
        self.unknown: set[UUID] = set()
        self.pushed: set[UUID] = set()
        self._engine = engine
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Callers:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(60)

    def reach(self, count: int) -> None:
        """Wait until so many are accepted."""
        eventually(lambda: len(self.ok) >= count, within=90, what=f"{count} accepted operations")

    def _run(self) -> None:
        turn = 0
        while not self._stop.wait(0.01):
            turn += 1
            self._transaction(turn, take_back=turn % 20 == 0)

    def _transaction(self, turn: int, *, take_back: bool) -> None:
        mine: set[UUID] = set()
        try:
            with self._engine.connect() as connection:
                for n in range(5):
                    pushed = enqueue(connection, push_customer, Customer(f"c{turn}-{n}", 1, f"{turn}@example.com"))
                    mine |= {pushed, enqueue(connection, put_stock, Stock(f"s{turn}-{n}", 1, n))}
                    self.pushed.add(pushed)
                if take_back:
                    connection.rollback()
                    self.failed |= mine
                    return
                connection.commit()
            self.ok |= mine
        except exc.DBAPIError:
            self.unknown |= mine


@contextmanager
def scene(tmp_path: Path, planted: Planted) -> Iterator[tuple[Postgres, Kafka, FakeSink, CommandLine]]:
    """Servers of this test's own, since it kills them."""
    with (
        running_postgres() as postgres,
        running_kafka() as kafka,
        FakeSink.started(tmp_path, MISBEHAVES) as sink,
    ):
        initialise(postgres.url, ledger=LEDGER)
        line = CommandLine(tmp_path, planted, dict(SHORT))
        line.settings |= {"ledger": LEDGER, "database": postgres.url, "brokers": kafka.bootstrap}
        line.run("topics", "apply")
        try:
            yield postgres, kafka, sink, line
        finally:
            line.end_all()


@pytest.mark.timeout(400)
def test_nothing_is_lost_or_doubled_while_everything_is_killed_in_turn(tmp_path: Path, planted: Planted) -> None:
    """S1, S3, S4, S5, S6, S15, S16, S19, L1, L2, L5: under load, asserted from the sink's journal, the topics and the callers."""
    with scene(tmp_path, planted) as (postgres, kafka, sink, line):
        engine = ledger_engine(postgres.url)
        with engine.begin() as connection:
            connection.execute(text(STOCK_VIEW))
        where = {SINK_URL: sink.url}

        def start(part: str) -> Started:
            return line.start(part, environment=where)

        relays, workers = [start("relay"), start("relay")], [start("worker"), start("worker")]
        with Callers(engine) as callers:
            callers.reach(500)
            eventually(lambda: _running(engine) > 4, within=60, what="effects in flight")
            workers[0].kill()
            workers[0] = start("worker")
            callers.reach(1000)
            relays[0].kill()
            relays[0] = start("relay")
            callers.reach(1500)
            eventually(lambda: _running(engine) > 4, within=60, what="effects in flight")
            workers[1].stop()
            kafka.kill()
            kafka.start()
            callers.reach(2000)
            workers[1].resume()
            postgres.kill()
            postgres.start()
            callers.reach(3000)
        eventually(lambda: _finished(engine), within=120, what="the end of every operation")
        parts = [*relays, *workers]
        assert [part.running() for part in parts] == [True] * 4
        assert [part.terminate() for part in parts] == [0] * 4
        _check(engine, Topics(kafka, LEDGER), sink, callers)
        engine.dispose()


def _finished(engine: Engine) -> bool:
    unfinished = """SELECT (SELECT count(*) FROM counterfoil.state WHERE due_at IS NOT NULL)
        + (SELECT count(*) FROM counterfoil.outbox)"""
    with engine.connect() as connection:
        return bool(connection.execute(text(unfinished)).scalar_one() == 0)


def _running(engine: Engine) -> int:
    with engine.connect() as connection:
        return int(connection.execute(text("SELECT count(*) FROM counterfoil.state WHERE state = 'running'")).scalar_one())


def _check(engine: Engine, topics: Topics, sink: FakeSink, callers: Callers) -> None:
    commands = [topics.name(each, road) for each in ("push_customer", "upsert_projection") for road in ("commands", "retry")]
    records = topics.records(*commands)
    state_records = topics.records(topics.name("state"))
    committed = {(topic, n): at for topic in commands for n, at in topics.committed(group_of(LEDGER), topic).items()}
    assert committed, "the group has committed"
    names = {
        f"{kind}:{each}": topics.name(each, road)
        for kind, road in (("command", "commands"), ("retry", "retry"))
        for each in ("push_customer", "upsert_projection")
    }
    checks: list[Callable[[], None]] = [
        lambda: invariants.accepted_is_what_the_callers_know(engine, callers.ok, callers.unknown, callers.failed),
        lambda: invariants.effects_are_single(engine, sink.effects_per_operation(), callers.pushed),
        lambda: invariants.chains_verify(engine),
        lambda: invariants.published_is_in_the_topics(
            engine, [*records, *state_records], {"state": topics.name("state"), **names}
        ),
        lambda: invariants.below_the_committed_offset_all_is_known(engine, records, committed),
        lambda: invariants.the_state_topic_ends_with_the_ledger(engine, state_records),
        lambda: invariants.nothing_is_forgotten(engine),
    ]
    for check in checks:
        check()
    # Not vacuous: enough was done, every planned fault was met, and the in-ledger rows are there once.
    done = invariants.states(engine)
    assert set(done.values()) == {"succeeded", "confirmed"}
    assert len(done) >= 3000
    assert set(sink.met()) >= {behaviour.value for behaviour in MISBEHAVES.shares}
    with engine.connect() as connection:
        rows = connection.execute(text("SELECT count(*) FROM stock_view")).scalar_one()
        lost_leases = connection.execute(text("SELECT count(*) FROM counterfoil.event WHERE reason = 'lease_over'")).scalar_one()
    assert rows == sum(1 for state in done.values() if state == "confirmed")
    assert lost_leases > 0
