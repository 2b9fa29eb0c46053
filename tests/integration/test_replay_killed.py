"""A plan's replay on the real road: killed half way and run again; nothing is sent twice, and nothing to another topic."""

from __future__ import annotations

import json
import time
from collections import Counter
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import text

from counterfoil.core.roads import COMMAND
from examples.upsert_projection import Stock
from tests.support.ledgers import Bed
from tests.support.processes import CommandLine
from tests.support.quarantined import quarantined
from tests.support.topics import Topics
from tests.support.waiting import eventually
from tests.support.worked import QUICK, Works, one_by_one


@pytest.fixture
def works(command_line: CommandLine, ledger: Bed, topics: Topics) -> Works:
    made = Works(command_line, ledger, topics)
    made.prepare()
    command_line.settings |= {"operations": QUICK["operations"]}
    return made


def answered(works: Works, *arguments: str, code: int = 0) -> Any:
    return json.loads(works.line.run("dlq", *arguments, "--json", within=100, code=code).stdout)


def test_a_replay_killed_half_way_goes_on_where_it_stopped_and_sends_nothing_twice(works: Works) -> None:
    """D71, D73, D74, D76: 100 dead letters, killed after some; the rest the second time, none the third; by today's time."""
    ids = {str(one) for one in quarantined(works.ledger, one_by_one, [Stock(f"sku-{n}", 1, n) for n in range(100)])}
    with works.ledger.engine.begin() as connection:
        connection.execute(text("UPDATE counterfoil.operation SET created_at = created_at - interval '10 days'"))
        connection.execute(text("DELETE FROM counterfoil.outbox"))  # only what the replay sends is looked at
    plan = str(answered(works, "plan", "--type", "one_by_one", "--consumer", "worker 2", "--reason", "corrected")["id"])
    arguments = ("dlq", "replay", plan, "--reason", "go", "--no-canary", "--rate", "50", "--json")
    works.line.start(*arguments, failpoints="replay.before_commit=kill@20").wait(60)
    sent = works.states(one_by_one)["queued"]
    assert 19 <= sent < 100, "killed half way, in the middle of a step"
    second = answered(works, "replay", plan, "--reason", "go on", "--no-canary")
    assert (second["end"], second["sent"]) == ("done", 100 - sent)
    third = answered(works, "replay", plan, "--reason", "again", "--no-canary")
    assert (third["end"], third["sent"]) == ("nothing_left", 0)
    assert works.kinds("replayed") == 100
    assert [
        one["result"] for one in works.ledger.rows("SELECT result FROM counterfoil.act WHERE action = 'replay' ORDER BY id")
    ] == [
        "begun",
        "resumed",
        "done",
    ]
    before = time.time()
    works.relay()
    eventually(lambda: works.ledger.one("SELECT count(*) FROM counterfoil.outbox") == 0, what="the relay")
    records = works.topics.records(*works.topics.existing())
    assert {record.topic() for record in records} == {works.topics.name("one_by_one", COMMAND + "s")}
    named = [dict(record.headers() or [])["ce_id"] for record in records]
    told = Counter(name.decode() for name in named if isinstance(name, bytes))
    assert told == Counter(dict.fromkeys(ids, 1))
    assert all(before - 5 <= record.timestamp()[1] / 1000 <= time.time() + 5 for record in records)


def test_two_runs_of_one_plan_share_its_dead_letters(works: Works) -> None:
    """D71: each is sent by one of them."""
    quarantined(works.ledger, one_by_one, [Stock(f"sku-{n}", 1, n) for n in range(60)])
    plan = str(answered(works, "plan", "--type", "one_by_one", "--consumer", "worker 2", "--reason", "corrected")["id"])
    arguments = ("dlq", "replay", plan, "--reason", "go", "--no-canary", "--rate", "20", "--json")
    runs = [works.line.start(*arguments) for _ in range(2)]
    assert [run.wait(90) for run in runs] == [0, 0]
    assert works.kinds("replayed") == 60
    assert works.ledger.one("SELECT count(*) FROM counterfoil.plan_item WHERE status = 'done'") == 60


def test_a_record_without_an_operation_is_shown_kept_out_of_the_road_and_discarded(works: Works) -> None:
    """S12, D74: its headers name a topic of somebody else's; nothing is ever sent there."""
    cause = uuid4()
    with works.ledger.engine.begin() as connection:
        connection.execute(
            text(
                """INSERT INTO counterfoil.raw_record
                    (id, status, reason, type, topic, partition, record_offset, value, headers, due_at, at)
                VALUES (:id, 'quarantined', 'undecodable_frame', 'one_by_one', 'payments-prod', 0, 7, 'x'::bytea, ''::bytea,
                    counterfoil.ledger_time(), counterfoil.ledger_time())"""
            ),
            {"id": cause},
        )
    assert answered(works, "show", str(cause))["record"]["topic"] == "payments-prod"
    plan = answered(works, "plan", "--id", str(cause), "--consumer", "worker 2", "--reason", "look")
    assert plan["preview"]["send"] == []
    done = answered(works, "replay", str(plan["id"]), "--reason", "go", "--no-canary")
    assert (done["sent"], sum(done["refused"].values())) == (0, 1)
    assert works.ledger.one("SELECT count(*) FROM counterfoil.outbox") == 0
    assert answered(works, "discard", str(cause), "--reason", "noise")["sent"] == 1
    assert [one["status"] for one in works.raw()] == ["discarded"]
