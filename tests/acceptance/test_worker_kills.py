"""Workers as processes, killed, stopped and joined at the worst moments; judged by the sink's own journal and the ledger."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from counterfoil.sinks.fake import Behaviour, FakeSink, Plan, Rule
from tests.support.ledgers import Bed
from tests.support.processes import CommandLine
from tests.support.topics import Topics
from tests.support.waiting import eventually
from tests.support.worked import Works, in_batches, lines, one_by_one, push, push_async


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
    return made


def test_a_worker_killed_after_the_effect_and_before_the_settle_leaves_a_doubt_and_no_second_effect(
    works: Works, sink: FakeSink
) -> None:
    """S1, S8, S10, L5, D92, D59: the admitted event was committed before the request, and the lease's end tells."""
    works.relay()
    killed = works.worker(failpoints="worker.after_effect=kill")
    works.enqueue(push, ["a"])
    killed.reached("worker.after_effect")
    assert killed.wait() == -9
    assert works.kinds("admitted") == 1
    works.worker()
    works.settled(push, awaiting_confirmation=1)
    assert works.rows(push)[0]["reason"] == "lease_over"
    eventually(lambda: works.committed(push) == 1, what="the commit by the next owner")
    assert sink.effects_per_operation().total() == 1
    assert len(sink.entries()) == 1


def test_a_worker_killed_between_effect_and_commit_in_the_ledger_leaves_nothing_and_the_next_one_runs_it(works: Works) -> None:
    """S1, L5, D59, D92: no commit, no effect; the crash counts as an attempt."""
    works.relay()
    killed = works.worker(failpoints="worker.before_settle_commit=kill")
    works.enqueue(in_batches, [f"sku-{n}" for n in range(50)])
    killed.reached("worker.before_settle_commit")
    assert killed.wait() == -9
    assert not works.logged()
    works.worker()
    works.settled(in_batches, confirmed=50)
    assert set(works.logged().values()) == {1}
    assert max(row["attempt"] for row in works.rows(in_batches)) == 2


@pytest.mark.parametrize("kind", ["in_batches", "push"])
def test_a_worker_killed_after_the_settle_and_before_the_commit_runs_nothing_twice(
    works: Works, sink: FakeSink, kind: str
) -> None:
    """S1, S3, S6, D92: the redelivered record is completed, and a finished operation stays finished."""
    operation_type = {"in_batches": in_batches, "push": push}[kind]
    end = {"in_batches": "confirmed", "push": "succeeded"}[kind]
    works.relay()
    killed = works.worker(failpoints="worker.after_settle=kill")
    works.enqueue(operation_type, ["a"])
    killed.reached("worker.after_settle")
    assert killed.wait() == -9
    assert works.states(operation_type) == {end: 1}
    assert works.committed(operation_type) == 0
    second = works.worker()
    eventually(lambda: works.committed(operation_type) == 1, within=30, what="the commit by the next owner")
    assert works.states(operation_type) == {end: 1}
    assert works.kinds("redelivered") == 1
    assert works.logged().total() + sink.effects_per_operation().total() == 1
    received = [line for line in lines(second) if line["event"] == "received"]
    assert [line["redelivered"] for line in received] == [True]


def test_a_third_worker_that_joins_while_effects_are_in_flight_causes_no_second_call(works: Works, sink: FakeSink) -> None:
    """S1, S6, S8, D29: what is in flight finishes within its grace; the new owner completes, and calls nothing."""
    sink.plan(Plan(rules=(Rule(Behaviour.SLOW, seconds=2.0),)))
    works.relay()
    first, second = works.worker(), works.worker()
    works.enqueue(push, [f"sku-{n}" for n in range(24)])
    eventually(lambda: len(sink.entries()) >= 4 or works.kinds("admitted") >= 8, what="effects in flight")
    third = works.worker()
    third.printed("partitions_assigned")
    works.settled(push, within=60, succeeded=24)
    assert max(sink.effects_per_operation().values()) == 1
    assert len(sink.entries()) == 24
    eventually(lambda: works.committed(push) == 24, what="all commits")
    assert [each.terminate() for each in (first, second, third)] == [0, 0, 0]


def test_sigterm_with_a_half_filled_batch_finishes_what_runs_and_gives_back_the_rest(works: Works, sink: FakeSink) -> None:
    """S1, S6, S22, L1: nothing is half done; what was not sent costs no try."""
    sink.plan(Plan(rules=(Rule(Behaviour.SLOW, seconds=1.0),)))
    works.relay()
    stopped = works.worker()
    works.enqueue(push, [f"sku-{n}" for n in range(40)])
    eventually(lambda: works.kinds("admitted") >= 4, what="effects in flight")
    assert stopped.terminate() == 0
    states = works.states(push)
    assert not states["running"]
    assert states["succeeded"] == len(sink.entries())
    assert states.total() == 40
    assert works.rows(push)[0]["session"] is None
    assert all(row["tries_left"] == 3 for row in works.rows(push) if row["state"] in ("queued", "retry_wait"))
    works.worker()
    works.settled(push, within=60, succeeded=40)
    assert max(sink.effects_per_operation().values()) == 1


def test_a_worker_stopped_past_its_lease_and_continued_sends_nothing_and_changes_nothing(works: Works, sink: FakeSink) -> None:
    """S9, S1, L5: the clock of the last check counts the time in which the process stood still."""
    works.relay()
    stopped = works.worker(failpoints="worker.after_admit=stop")
    works.enqueue(push, ["a"])
    stopped.reached("worker.after_admit")
    works.worker()
    works.settled(push, awaiting_confirmation=1)
    assert not sink.entries()
    stopped.resume()
    works.settled(push, succeeded=1)
    assert len(sink.entries()) == 1
    (row,) = works.rows(push)
    assert row["attempt"] == 2
    told = works.ledger.rows("SELECT kind, attempt, reason FROM counterfoil.event WHERE kind = 'retry_scheduled'")
    assert [(each["attempt"], each["reason"]) for each in told] == [(1, "not_sent_lease")]


def test_a_worker_stopped_in_the_ledger_past_its_lease_writes_nothing_afterwards(works: Works) -> None:
    """S9, S1: its attempt is stale, so neither its effect nor its outcome is written."""
    works.relay()
    stopped = works.worker(failpoints="worker.after_admit=stop")
    works.enqueue(one_by_one, ["a", "b"])
    stopped.reached("worker.after_admit")
    works.worker()
    works.settled(one_by_one, confirmed=2)
    before = works.ledger.rows("SELECT * FROM stock_log ORDER BY sku")
    stopped.resume()
    stopped.printed("lease_lost")
    assert stopped.terminate() == 0
    assert works.ledger.rows("SELECT * FROM stock_log ORDER BY sku") == before
    assert works.states(one_by_one) == {"confirmed": 2}
    assert set(works.logged().values()) == {1}


def test_uncertain_attempts_at_a_sink_with_keys_are_sent_again_under_the_same_key(works: Works, sink: FakeSink) -> None:
    """S1, S10: the answers were lost after applying; the repeat is answered with the first result."""
    sink.plan(Plan(rules=(Rule(Behaviour.ANSWER_LOST, calls=(1,)),)))
    works.relay()
    works.worker()
    works.enqueue(push_async, [f"sku-{n}" for n in range(10)])
    works.settled(push_async, within=60, succeeded=10)
    assert sink.met()["answer_lost"] == 10
    assert set(sink.effects_per_operation().values()) == {1}
    keys = {entry.key for entry in sink.entries()}
    assert len(keys) == 10


def test_an_exception_inside_a_worker_ends_it_and_the_record_is_not_passed(works: Works) -> None:
    """S6, D22, D23, D28: an agent that goes on after an exception would commit over the hole; this process leaves."""
    works.relay()
    broken = works.worker(failpoints="worker.after_admit=raise")
    works.enqueue(in_batches, [f"sku-{n}" for n in range(6)])
    broken.reached("worker.after_admit")
    assert broken.wait(40) == 4
    assert works.committed(in_batches) == 0
    works.worker()
    works.settled(in_batches, confirmed=6)
    eventually(lambda: works.committed(in_batches) >= 6, what="the commit")
    assert set(works.logged().values()) == {1}
