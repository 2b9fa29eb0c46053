"""A worker without its database or its brokers: at start and for good it leaves with a code; for a moment it waits (D34)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from counterfoil.ledger.engine import ledger_engine
from counterfoil.parts import Kafka, Postgres, database_from_template, postgres
from tests.support.ledgers import Bed
from tests.support.processes import CommandLine
from tests.support.topics import Topics
from tests.support.waiting import eventually
from tests.support.worked import Works, in_batches

NOWHERE = "127.0.0.1:1"


@pytest.fixture
def works(command_line: CommandLine, ledger: Bed, topics: Topics) -> Works:
    made = Works(command_line, ledger, topics)
    made.prepare()
    return made


@contextmanager
def _own_database(works: Works, ledger: str) -> Iterator[tuple[Postgres, Works]]:
    """The same, on a server that the test may stop."""
    with postgres() as server, database_from_template(server, renamed=ledger) as database:
        engine = ledger_engine(database.url, pool_size=4)
        bed = Bed(server, database, engine, database.url)
        mine = Works(works.line, bed, works.topics)
        mine.line.settings["database"] = database.url
        try:
            yield server, mine
        finally:
            works.line.end_all()
            engine.dispose()
            if not server.server.running():
                server.start()


def test_a_database_that_is_not_there_at_the_start_ends_the_worker_in_time(works: Works) -> None:
    """D34."""
    worker = works.worker(wait=False, database=f"postgresql://postgres@{NOWHERE}/none", stop_after="2s")
    assert worker.wait(30) == 3
    assert "database_lost" in worker.output


def test_brokers_that_are_not_there_at_the_start_end_the_worker_in_time(works: Works) -> None:
    """D34."""
    worker = works.worker(wait=False, brokers=NOWHERE, stop_after="3s")
    assert worker.wait(60) == 3
    assert "broker_lost" in worker.output


def test_a_database_that_is_lost_for_good_ends_the_worker_and_one_lost_for_a_moment_does_not(works: Works) -> None:
    """D34, S6, L1: after the moment everything goes on by itself."""
    with _own_database(works, works.ledger.name) as (server, mine):
        mine.prepare()
        relay = mine.line.start("relay", "--json", operations="tests.support.worked:OPERATIONS", stop_after="60s")
        relay.printed('"lease_taken"')
        worker = mine.worker(stop_after="10s")
        mine.enqueue(in_batches, ["a"])
        mine.settled(in_batches, confirmed=1)
        server.restart()
        mine.ledger.engine.dispose()
        mine.enqueue(in_batches, ["b"])
        mine.settled(in_batches, within=60, confirmed=2)
        assert worker.running()
        server.stop()
        assert worker.wait(60) == 3
        assert "database_lost" in worker.output


def test_brokers_that_are_lost_for_good_end_the_worker(works: Works, kafka: Kafka) -> None:
    """D34: connections that hang count too."""
    with kafka.proxy() as proxy:
        worker = works.worker(brokers=proxy.address, stop_after="4s")
        worker.printed("partitions_assigned")
        proxy.refuse()
        assert worker.wait(60) == 3
        assert "broker_lost" in worker.output


def test_a_topic_that_is_missing_is_an_alarm_and_is_taken_up_when_it_is_there(
    command_line: CommandLine, ledger: Bed, topics: Topics
) -> None:
    """D13: nothing creates it; the types whose topics exist are worked on meanwhile."""
    works = Works(command_line, ledger, topics)
    topics.make("in_batches")
    with ledger.engine.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE stock_view (sku text PRIMARY KEY, version bigint, on_hand bigint)")
        connection.exec_driver_sql("CREATE TABLE stock_log (sku text, attempt int)")
    works.enqueue(in_batches, ["a"])
    works.send(topics.name("in_batches", "commands"), works.commands(in_batches))
    worker = works.worker(kafka='{"session.timeout.ms": "3000", "topic.metadata.refresh.interval.ms": "500"}')
    works.settled(in_batches, confirmed=1)
    eventually(lambda: "topic_missing" in worker.output, what="the alarm")
    assert topics.name("push", "commands") not in topics.existing()
    topics.make("push")
    eventually(lambda: worker.output.count("partitions_assigned") >= 2, what="the new partitions")
    assert worker.terminate() == 0
