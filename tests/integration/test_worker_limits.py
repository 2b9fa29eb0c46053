"""Several workers at one sink: its limits, its outages, its pauses. Real PostgreSQL, Kafka, worker processes and a sink."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from counterfoil.sinks.fake import Behaviour, Entry, FakeSink, Plan, Rule
from tests.support.ledgers import Bed
from tests.support.limited_types import MODULE, OPERATIONS, PACED, TRIES, narrow, paced
from tests.support.processes import CommandLine, Started
from tests.support.topics import Topics
from tests.support.waiting import eventually
from tests.support.worked import Works, in_batches, lines

CALL = 0.4  #: seconds that a call takes
SLOW = Plan(rules=(Rule(Behaviour.SLOW, seconds=CALL),))
AFTER = 10
#: Each worker gets partitions of each topic; by the worker's own choice one may get all of a type's.
TURNS = '{"session.timeout.ms": "6000", "heartbeat.interval.ms": "500", "partition.assignment.strategy": "roundrobin"}'


@pytest.fixture
def sink(tmp_path: Path) -> Iterator[FakeSink]:
    folder = tmp_path / "sink"
    folder.mkdir()
    with FakeSink.started(folder) as started:
        yield started


@pytest.fixture
def works(command_line: CommandLine, ledger: Bed, topics: Topics, sink: FakeSink) -> Works:
    made = Works(command_line, ledger, topics, sink.url)
    made.prepare()
    topics.make(*(each.name for each in OPERATIONS.types))
    command_line.settings |= {"operations": MODULE, "breaker_after": str(AFTER), "breaker_wait": "1s"}
    made.relay()
    return made


def _workers(works: Works, count: int) -> list[Started]:
    started = [works.worker(wait=False, operations=MODULE, kafka=TURNS) for _ in range(count)]
    eventually(lambda: len({_partitions(each) for each in started}) == 1, within=45, what="as many partitions for each")
    return started


def _partitions(started: Started) -> int:
    """How many a worker has now."""
    signs = {"partitions_assigned": 1, "partitions_revoked": -1}
    return sum(signs.get(line["event"], 0) * line.get("count", 0) for line in lines(started)) or -started.pid  # none yet


def _admitted(started: Started) -> int:
    """How many attempts a worker has begun."""
    return sum(line["event"] == "received" and line.get("attempt") is not None for line in lines(started))


def _overlap(entries: Iterable[Entry]) -> int:
    """The most calls that the sink had at one moment, by its own journal: each took CALL seconds, and was noted at its end."""
    moments = sorted(moment for each in entries for moment in ((each.at - CALL, 1), (each.at, -1)))
    most = there = 0
    for _, step in moments:
        there += step
        most = max(most, there)
    return most


def test_two_workers_together_never_have_more_calls_in_flight_than_the_sink_allows(works: Works, sink: FakeSink) -> None:
    """D65, L3: counted in the sink's own journal; each worker got its turn."""
    sink.plan(SLOW)
    started = _workers(works, 2)
    works.enqueue(narrow, [f"sku-{n}" for n in range(40)])
    works.settled(narrow, within=60, succeeded=40)
    assert all(_admitted(each) for each in started)
    entries = [each for each in sink.entries() if each.applied]
    assert len(entries) == 40
    assert 2 <= _overlap(entries) <= 3
    assert sink.doubled() == 0


def test_a_worker_that_is_killed_with_its_share_leaves_it_to_the_other(works: Works, sink: FakeSink) -> None:
    """L1, L5."""
    sink.plan(SLOW)
    first, _ = _workers(works, 2)
    works.enqueue(narrow, [f"sku-{n}" for n in range(30)])
    eventually(lambda: _admitted(first), what="calls of the first worker in flight")
    first.send(signal.SIGKILL)
    first.wait()
    eventually(lambda: works.states(narrow)["running"] == 0 and works.states(narrow)["queued"] == 0, within=60, what="the rest")
    alone = """SELECT h.slots FROM counterfoil.sink_share h JOIN counterfoil.worker w ON w.id = h.session
        WHERE h.name = 'narrow' AND w.lease_until > counterfoil.ledger_time()"""
    eventually(lambda: [row["slots"] for row in works.ledger.rows(alone)] == [3], what="the whole sink for the one that lives")
    assert sink.doubled() == 0


def test_an_outage_opens_the_breaker_spends_no_tries_and_is_worked_off_at_the_sinks_rate(works: Works, sink: FakeSink) -> None:
    """D65, L1, L3, S1: a thousand operations meet a sink that is down; others go on; once it is back none is lost or doubled."""
    begun = works.ledger.one("SELECT counterfoil.ledger_time()")
    sink.stop()
    started = _workers(works, 2)
    works.enqueue(paced, [f"sku-{n}" for n in range(1000)])
    position = "SELECT count(*) FROM counterfoil.sink WHERE name = 'paced' AND position <> 'closed' AND openings >= 3"
    eventually(lambda: works.ledger.one(position), within=60, what="an open breaker, and probes that failed")
    works.enqueue(in_batches, [f"other-{n}" for n in range(50)])
    works.settled(in_batches, confirmed=50)
    spent = sum(TRIES - row["tries_left"] for row in works.rows(paced))
    # Those that failed before it opened, with what was in flight then; and what is running right now as a probe.
    most = AFTER + PACED.limits.concurrency + 2
    assert 0 < spent <= most
    assert works.states(paced)["queued"] >= 1000 - 4 * most, "nothing was even tried"
    probes = sum(row["attempt"] for row in works.rows(paced))
    sink.restart()
    works.settled(paced, within=120, succeeded=1000)
    assert sum(TRIES - row["tries_left"] for row in works.rows(paced)) <= 1000 + most
    assert sink.doubled() == 0
    assert len([each for each in sink.entries() if each.applied]) == 1000
    assert probes <= 6 * most, "calls while it was down are bounded"
    told = [line["event"] for each in started for line in lines(each) if line["event"].startswith("breaker_")]
    assert told.count("breaker_opened") == told.count("breaker_closed") == 1, "one worker says so, once"
    # Every call has a token, and the ledger's account of tokens is the rate's.
    until = works.ledger.one("SELECT spent_until FROM counterfoil.sink WHERE name = 'paced'")
    assert (until - begun).total_seconds() * 100 + 20 + 1 >= 1000
    assert works.ledger.one("SELECT count(*) FROM counterfoil.outage WHERE closed_at IS NOT NULL") == 1
    assert all(each.running() for each in started), "L6: nobody took it for a worker's fault"


def _paused(works: Works, started: Iterable[Started], event: str) -> list[dict[str, Any]]:
    """The line by which each worker says so."""
    found = []
    for each in started:
        each.printed(f'"{event}"')
        found += [line for line in lines(each) if line["event"] == event]
    return found


def test_a_pause_and_its_end_are_in_force_on_every_worker_within_five_seconds(works: Works) -> None:
    """L3, L5, S6: what is paused waits, whatever comes; other types go on; then everything is worked off."""
    started = _workers(works, 2)
    works.enqueue(in_batches, ["before"])
    works.settled(in_batches, confirmed=1)
    told = json.loads(works.line.run("pause", "--type", "in_batches", "--reason", "look first", "--json").stdout)
    said = _paused(works, started, "paused")
    assert {line["type"] for line in said} == {"in_batches"}
    assert len(said) == 2
    for line in said:
        assert (datetime.fromisoformat(line["time"]) - datetime.fromisoformat(told["at"])).total_seconds() < 5
    works.enqueue(in_batches, [f"sku-{n}" for n in range(200)])
    works.enqueue(narrow, [f"other-{n}" for n in range(5)])
    works.settled(narrow, succeeded=5)
    assert works.states(in_batches) == {"confirmed": 1, "queued": 200}
    late = works.worker(wait=False, operations=MODULE, kafka=TURNS)
    late.printed('"partitions_assigned"')
    works.enqueue(narrow, [f"more-{n}" for n in range(5)])
    works.settled(narrow, succeeded=10)
    assert works.states(in_batches) == {"confirmed": 1, "queued": 200}, "a worker that comes later runs nothing of it either"
    works.line.run("resume", "--type", "in_batches", "--reason", "all is well")
    _paused(works, started, "resumed")
    works.settled(in_batches, confirmed=201)
    assert set(works.logged().values()) == {1}


def test_a_paused_sink_stops_its_types_and_a_pause_ends_by_itself(works: Works, sink: FakeSink) -> None:
    """L3, L4: by the ledger's clock; nobody resumes it."""
    started = _workers(works, 1)
    works.line.run("pause", "--sink", "narrow", "--reason", "maintenance", "--for", "6s")
    _paused(works, started, "paused")
    works.enqueue(narrow, ["a", "b"])
    works.enqueue(paced, ["c"])
    works.settled(paced, succeeded=1)
    assert works.states(narrow) == {"queued": 2}
    works.settled(narrow, succeeded=2)
    _paused(works, started, "resumed")
    until = works.ledger.one("SELECT until FROM counterfoil.pause")
    assert min(row["admitted_at"] for row in works.rows(narrow)) >= until
