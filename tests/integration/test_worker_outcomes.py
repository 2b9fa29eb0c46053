"""What a running worker makes of every kind of answer, inside the ledger and outside; on real PostgreSQL, Kafka and a sink."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import text

from counterfoil.sinks.fake import Behaviour, FakeSink, Plan, Rule
from tests.support import held_types
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
    made.relay()
    return made


def raised_of(works: Works, kind: str) -> dict[str, tuple[str | None, str, str]]:
    """By the first word of the entity: what the events of a kind say of the last answer, its exception's class, and its file."""
    rows = works.ledger.rows(
        """SELECT o.entity, e.detail->>'cause' AS cause, e.detail->>'error_class' AS class, e.detail->>'place' AS place
        FROM counterfoil.event e JOIN counterfoil.operation o USING (number) WHERE e.kind = :kind""",
        kind=kind,
    )
    return {
        row["entity"].strip("(").partition("-")[0]: (row["cause"], row["class"], (row["place"] or "").partition(":")[0])
        for row in rows
    }


def test_operations_go_from_the_callers_transaction_to_confirmed_and_their_offsets_are_committed(works: Works) -> None:
    """S1, S6, L1: the plain road; the log of one operation reads received, result_saved, ack_sent."""
    worker = works.worker()
    works.enqueue(in_batches, [f"sku-{n}" for n in range(300)])
    works.enqueue(one_by_one, [f"one-{n}" for n in range(150)])
    works.settled(in_batches, confirmed=300)
    works.settled(one_by_one, confirmed=150)
    assert set(works.logged().values()) == {1}
    assert works.logged().total() == 450
    eventually(lambda: works.committed(in_batches) == 300, what="the commits")
    eventually(lambda: works.committed(one_by_one) == 150, what="the commits")
    noted = "SELECT sum(up_to) FROM (SELECT topic, partition, max(up_to) AS up_to FROM counterfoil.acknowledged GROUP BY 1, 2) a"
    eventually(lambda: works.ledger.one(noted) == 450, what="the notes of the commits")
    assert worker.terminate() == 0
    (one,) = works.ledger.rows("SELECT operation_id FROM counterfoil.operation WHERE entity LIKE '%sku-7,%'")
    told = [line for line in lines(worker) if line.get("operation_id") == str(one["operation_id"])]
    assert [line["event"] for line in told] == ["received", "result_saved", "ack_sent"]
    assert {line["type"] for line in told} == {"in_batches"}
    assert {line["attempt"] for line in told} == {1}
    assert told[1]["reason"] == "in_ledger_commit"


def test_a_failing_batch_is_halved_until_the_one_that_fails_is_alone(works: Works) -> None:
    """S1, S12, D64: the others are applied once; a failure's own writes are rolled back; tries are counted exactly."""
    works.enqueue(in_batches, [*(f"sku-{n}" for n in range(60)), "busy-1", "rejected-1", "odd-1"])
    works.enqueue(one_by_one, [*(f"one-{n}" for n in range(60)), "busy-2", "rejected-2", "odd-2", "commits-2"])
    worker = works.worker()
    works.settled(in_batches, confirmed=60, quarantined=3)
    works.settled(one_by_one, confirmed=60, quarantined=4)
    logged = works.logged()
    assert set(logged.values()) == {1}
    assert len(logged) == 120, "nothing that failed left a row, not even the one that tried to commit"
    ended = {row["entity"].split(",")[0].strip("("): row for row in works.rows(in_batches) + works.rows(one_by_one)}
    assert {name: (ended[name]["attempt"], ended[name]["reason"]) for name in ended if not name.startswith(("sku", "one"))} == {
        "busy-1": (3, "tries_used_up"),
        "busy-2": (3, "tries_used_up"),
        "rejected-1": (1, "rejected"),
        "rejected-2": (1, "rejected"),
        "odd-1": (3, "tries_used_up"),
        "odd-2": (3, "tries_used_up"),
        "commits-2": (3, "tries_used_up"),
    }
    written = "SELECT number FROM counterfoil.{} WHERE kind = 'dead_letter'"
    letters = f"SELECT number FROM ({written.format('outbox')} UNION ALL {written.format('published')}) l ORDER BY number"
    quarantined = "SELECT number FROM counterfoil.state WHERE state = 'quarantined' ORDER BY number"
    assert works.ledger.rows(letters) == works.ledger.rows(quarantined), "one dead letter each"
    assert raised_of(works, "quarantined") == {
        "busy": ("temporary_failure", "tests.support.worked.Busy", "tests/support/worked.py"),
        "rejected": (None, "tests.support.worked.Rejected", "tests/support/worked.py"),
        "odd": ("exception_rolled_back", "ValueError", "tests/support/worked.py"),
        "commits": (
            "effect_ended_transaction",
            "counterfoil.streams.worker.lent.EndedTransaction",
            "tests/support/worked.py",
        ),
    }
    told = [(line["type"], line["reason"]) for line in lines(worker) if line["event"] == "unexpected"]
    assert told == [("one_by_one", "effect_ended_transaction")] * 3, "the alarm names the type, at each try"


def test_answers_of_effects_outside_are_sorted_and_every_try_is_one_call(works: Works, sink: FakeSink) -> None:
    """S1, S8, S22, D64: temporary is tried again up to the last try, permanent is quarantined, the rest is a doubt."""
    sink.plan(
        Plan(
            rules=(
                Rule(Behaviour.RATE_LIMIT, entity="limited-once", calls=(1,), seconds=0.0),
                Rule(Behaviour.RATE_LIMIT, entity="limited-ever", seconds=0.0),
                Rule(Behaviour.REJECT, entity="refused"),
                Rule(Behaviour.CUT, entity="cut"),
                Rule(Behaviour.ERROR_APPLIED, entity="error"),
                Rule(Behaviour.ANSWER_LOST, entity="lost"),
                Rule(Behaviour.SLOW, entity="slow", seconds=6.0),
            )
        )
    )
    names = ["plain", "limited-once", "limited-ever", "refused", "cut", "error", "lost", "slow", "busy-1", "rejected-1", "odd-1"]
    works.enqueue(push, names)
    worker = works.worker()
    works.settled(push, within=60, succeeded=2, quarantined=4, awaiting_confirmation=5)
    ended = {row["entity"].split(",")[0].strip("("): row for row in works.rows(push)}
    assert {name: (ended[name]["state"], ended[name]["attempt"]) for name in names} == {
        "plain": ("succeeded", 1),
        "limited-once": ("succeeded", 2),
        "limited-ever": ("quarantined", 3),
        "refused": ("quarantined", 1),
        "cut": ("awaiting_confirmation", 1),
        "error": ("awaiting_confirmation", 1),
        "lost": ("awaiting_confirmation", 1),
        "slow": ("awaiting_confirmation", 1),
        "busy-1": ("quarantined", 3),
        "rejected-1": ("quarantined", 1),
        "odd-1": ("awaiting_confirmation", 1),
    }
    assert ended["slow"]["reason"] == "uncertain_answer", "the client's own time-out, the same number, comes first"
    assert ended["odd-1"]["reason"] == "unclassified_exception"
    assert raised_of(works, "awaiting_confirmation")["odd"] == (None, "ValueError", "tests/support/worked.py")
    line = next(line for line in lines(worker) if line.get("reason") == "unclassified_exception")
    assert (line["error_class"], line["place"].partition(":")[0]) == ("ValueError", "tests/support/worked.py")
    assert ended["refused"]["reason"] == "http_422"
    assert len([entry for entry in sink.entries() if entry.entity == "limited-ever"]) == 3
    assert max(sink.effects_per_operation().values()) == 1
    eventually(lambda: works.committed(push) == len(names), what="the commits")


def test_an_effect_that_blocks_keeps_its_thread_and_not_the_worker(works: Works, sink: FakeSink) -> None:
    """D31, D35, L6: longer than the session time-out; the group's member stays, the rest flows, a late answer still counts."""
    worker = works.worker()
    works.enqueue(push, ["late", *(f"sku-{n}" for n in range(100))])
    works.settled(push, succeeded=101)
    assert sink.effects_per_operation().total() == 101
    kinds = works.ledger.rows(
        """SELECT e.kind FROM counterfoil.event e JOIN counterfoil.operation o USING (number)
        WHERE o.entity LIKE '%late%' ORDER BY e.ordinal"""
    )
    assert [each["kind"] for each in kinds] == ["accepted", "admitted", "awaiting_confirmation", "result_saved"]
    assert worker.terminate() == 0
    assert "partitions_revoked" not in worker.output.split('"stopping"')[0]


def test_a_worker_that_has_lost_too_many_threads_leaves(works: Works) -> None:
    """D31, L6: calls that never return are not collected for ever."""
    worker = works.worker(lost_threads="2", shutdown_grace="1s", thread_pool="4")
    works.enqueue(push, ["deaf-1", "deaf-2", "deaf-3"])
    assert worker.wait(60) == 4
    assert "threads_lost" in worker.output
    assert works.states(push) == {"awaiting_confirmation": 3}


def test_async_effects_run_side_by_side_on_the_loop(works: Works, sink: FakeSink) -> None:
    """S1: as many at once as the sink's limits allow, each called once."""
    sink.plan(Plan(rules=(Rule(Behaviour.SLOW, seconds=1.0),)))
    worker = works.worker()
    works.enqueue(push_async, [f"sku-{n}" for n in range(32)])
    works.settled(push_async, within=25, succeeded=32)
    assert set(sink.effects_per_operation().values()) == {1}
    assert worker.terminate() == 0


def test_a_slow_type_in_the_ledger_leaves_the_other_types_their_turn(works: Works) -> None:
    """L3: its batches wait in the database for as long as they like; the other types settle meanwhile."""
    works.worker(operations=held_types.MODULE)
    waiting = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = :key AND NOT granted"
    with works.ledger.engine.connect() as connection:
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": held_types.LOCK})
        works.enqueue(in_batches, ["a", "b", "c"])
        eventually(lambda: works.ledger.one(waiting, key=held_types.LOCK) >= 1, within=30, what="a batch that waits")
        works.enqueue(push, ["x", "y"])
        works.enqueue(one_by_one, ["z"])
        works.settled(push, within=30, succeeded=2)
        works.settled(one_by_one, within=30, confirmed=1)
        assert "confirmed" not in works.states(in_batches)
    works.settled(in_batches, confirmed=3)


def test_the_newer_group_protocol_works_by_setting(works: Works) -> None:
    """KIP-848: the same road, with the brokers assigning."""
    worker = works.worker(group_protocol="consumer", kafka="{}")
    works.enqueue(in_batches, [f"sku-{n}" for n in range(20)])
    works.settled(in_batches, confirmed=20)
    eventually(lambda: works.committed(in_batches) == 20, what="the commits")
    assert worker.terminate() == 0
