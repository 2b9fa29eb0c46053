"""Held records on the real road: a newer contract waits for its worker, or for its deadline; a kill between changes nothing."""

from __future__ import annotations

import re
import signal
from pathlib import Path

import pytest
from sqlalchemy import text

from counterfoil import OperationType
from examples.upsert_projection import Stock
from tests.support.ledgers import Bed
from tests.support.processes import ROOT, CommandLine
from tests.support.topics import Topics
from tests.support.waiting import eventually
from tests.support.worked import QUICK, Works, in_batches, lines

NEWER = 99  #: the schema id of a contract that the older worker has not


@pytest.fixture
def works(command_line: CommandLine, ledger: Bed, topics: Topics) -> Works:
    made = Works(command_line, ledger, topics)
    made.prepare()
    command_line.settings |= {"operations": QUICK["operations"]}
    return made


def newer_lock(folder: Path) -> str:
    """The lock of the worker that was deployed with the newer contract."""
    told = (ROOT / "examples" / "contracts" / "registry.lock").read_text()
    there = re.sub(r'(\["com.example.Stock"\]\nversion = )1\nid = 7', rf"\g<1>2\nid = {NEWER}", told).replace(
        "next-id = 9", "next-id = 100"
    )
    assert f"id = {NEWER}" in there
    file = folder / "registry.lock"
    file.write_text(there)
    return str(file)


def enqueue_newer(works: Works, operation_type: OperationType[Stock], *skus: str) -> None:
    """As a caller with the newer contract does."""
    works.enqueue(operation_type, skus)
    value = f"overlay(value PLACING decode('00{NEWER:08x}', 'hex') FROM 1 FOR 5)"
    with works.ledger.engine.begin() as connection:
        connection.execute(text(f"UPDATE counterfoil.payload SET value = {value}, value_hash = sha256({value})"))


def held(works: Works, count: int) -> None:
    def there() -> bool:
        return [row["status"] for row in works.raw()] == ["held"] * count

    eventually(there, within=60, what=f"{count} held records")


def test_held_records_run_once_when_a_newer_worker_starts_though_it_is_killed_while_it_lets_them_go(works: Works) -> None:
    """S1, S6, L5: a rolling deploy whose callers came first."""
    enqueue_newer(works, in_batches, "a", "b", "c")
    works.relay()
    older = works.worker()
    held(works, 3)
    assert {row["reason"] for row in works.raw()} == {"no_capable_worker"}
    assert works.states(in_batches) == {"queued": 3}
    assert older.terminate() == 0
    lock = newer_lock(works.line.folder)
    killed = works.worker(failpoints="held.before_release_commit=kill", wait=False, registry_lock=lock)
    assert killed.wait(60) == -signal.SIGKILL
    held(works, 3)
    newer = works.worker(registry_lock=lock)
    works.settled(in_batches, confirmed=3)
    assert set(works.logged().items()) == {("a", 1), ("b", 1), ("c", 1)}
    assert {row["status"] for row in works.raw()} == {"released"}
    assert works.kinds("sent_again") == 3
    assert sum(line["count"] for line in lines(newer) if line["event"] == "released") == 3


def test_a_held_record_that_no_worker_can_do_in_time_is_quarantined_with_its_dead_letter(works: Works) -> None:
    """L1, S12: killed before it is committed, and done by the next worker."""
    enqueue_newer(works, in_batches, "a")
    works.relay()
    killed = works.worker(failpoints="held.before_end_commit=kill", hold_for="1s")
    assert killed.wait(60) == -signal.SIGKILL
    works.worker(hold_for="1s")
    works.settled(in_batches, quarantined=1)
    assert [row["status"] for row in works.raw()] == ["over"]
    [letter] = works.ledger.rows("SELECT value, headers FROM counterfoil.outbox WHERE kind = 'dead_letter'")
    assert dict(letter["headers"])["cf_reason"] == "hold_over"
    assert bytes(letter["value"]) == works.ledger.one("SELECT value FROM counterfoil.payload")


def test_a_record_let_go_by_hand_is_handled_again_by_whoever_is_there(works: Works) -> None:
    """S6, S13: by the older worker alone it is held once more, as a record of its own; its operation still waits."""
    enqueue_newer(works, in_batches, "a")
    works.relay()
    works.worker()
    held(works, 1)
    works.line.run("held", "release", "--type", "in_batches", "--reason", "let us see")
    eventually(lambda: [row["status"] for row in works.raw()] == ["released", "held"], within=60, what="the second hold")
    assert works.states(in_batches) == {"queued": 1}
    assert works.kinds("sent_again") == 1
