"""Records that kill the process that decodes them, really: found, given up after three kills, and everything else processed."""

from __future__ import annotations

from pathlib import Path
from uuid import uuid4

import pytest

from tests.support.deadly_types import MODULE, VICTIMS, kills
from tests.support.ledgers import Bed
from tests.support.processes import CommandLine, Started
from tests.support.topics import Topics
from tests.support.waiting import eventually
from tests.support.worked import Works, in_batches, lines

MOST_KILLS = 3


@pytest.fixture
def works(command_line: CommandLine, ledger: Bed, topics: Topics) -> Works:
    made = Works(command_line, ledger, topics)
    topics.create({topics.name("in_batches", "commands"): {}}, partitions=1)
    made.prepare()
    return made


@pytest.fixture
def victims(tmp_path: Path) -> Path:
    return tmp_path / "victims"


def _worker(works: Works, victims: Path, failpoints: str = "", *, wait: bool = True) -> Started:
    return works.worker(failpoints=failpoints, wait=wait, operations=MODULE, environment={VICTIMS: str(victims)})


def _commands(works: Works) -> str:
    return works.topics.name("in_batches", "commands")


def test_a_record_that_kills_the_process_on_decode_is_quarantined_after_three_kills_and_the_rest_is_processed(
    works: Works, victims: Path
) -> None:
    """S23, D26, S6, S12: found among others, decoded alone, given up; its operation with its dead letter, and nothing else."""
    works.enqueue(in_batches, ["a", "b", "kills", "c", "d"])
    works.send(_commands(works), works.commands(in_batches))
    for _ in range(MOST_KILLS):
        assert _worker(works, victims, wait=False).wait(60) == -9
    worker = _worker(works, victims)
    works.settled(in_batches, confirmed=4, quarantined=1)
    eventually(lambda: works.committed(in_batches) == 5, what="the commit")
    assert kills(victims) == {"kills": MOST_KILLS}
    assert [row["reason"] for row in works.rows(in_batches) if row["state"] == "quarantined"] == ["kills_the_process"]
    (letter,) = works.ledger.rows("SELECT value FROM counterfoil.outbox WHERE kind = 'dead_letter'")
    assert b"kills" in bytes(letter["value"])
    assert works.raw() == []
    assert any(line["event"] == "suspected" for line in lines(worker))
    assert worker.terminate() == 0


def test_a_deadly_record_without_an_operation_is_kept_raw_whichever_worker_has_its_partition(works: Works, victims: Path) -> None:
    """S23, S5, S6, D26: two workers take the partition from each other as they die; the bytes survive untouched."""
    works.enqueue(in_batches, ["kills", "a", "b"])
    (key, deadly, command), *rest = sorted(works.commands(in_batches), key=lambda one: b"kills" not in one[1])
    stranger = command._replace(number=987_654_321, operation_id=uuid4())
    works.send(_commands(works), [rest[0], (key, deadly, stranger), rest[1]])
    workers = [_worker(works, victims, wait=False) for _ in range(2)]
    assert [worker.wait(60) for worker in workers] == [-9, -9]
    assert _worker(works, victims, wait=False).wait(60) == -9
    _worker(works, victims)
    works.settled(in_batches, queued=1, confirmed=2)
    eventually(lambda: works.committed(in_batches) == 3, what="the commit")
    assert kills(victims) == {"kills": MOST_KILLS}
    (kept,) = works.raw()
    assert (kept["status"], kept["reason"], kept["record_offset"]) == ("quarantined", "kills_the_process", 1)
    assert (bytes(kept["value"]), bytes(kept["key"])) == (deadly, key)
    assert str(stranger.operation_id).encode() in bytes(kept["headers"])


def test_a_record_that_was_given_up_and_comes_again_before_its_commit_kills_nobody(works: Works, victims: Path) -> None:
    """S23, S12: the worker dies after the quarantine and before the commit; the record is known, and has one cause."""
    works.enqueue(in_batches, ["kills", "a"])
    works.send(_commands(works), works.commands(in_batches))
    for _ in range(MOST_KILLS):
        assert _worker(works, victims, wait=False).wait(60) == -9
    killed = _worker(works, victims, "worker.before_commit=kill")
    assert killed.wait(60) == -9
    _worker(works, victims)
    works.settled(in_batches, confirmed=1, quarantined=1)
    eventually(lambda: works.committed(in_batches) == 2, what="the commit")
    assert kills(victims) == {"kills": MOST_KILLS}
    assert works.ledger.one("SELECT count(*) FROM counterfoil.outbox WHERE kind = 'dead_letter'") == 1


def test_workers_killed_for_other_reasons_accuse_no_record(works: Works, victims: Path) -> None:
    """S23, S6: outside decoding nobody is suspected; inside it, records are decoded alone and none is given up."""
    works.enqueue(in_batches, [f"sku-{n}" for n in range(20)])
    works.send(_commands(works), works.commands(in_batches))
    assert _worker(works, victims, "worker.after_admit=kill", wait=False).wait(60) == -9
    assert works.ledger.one("SELECT count(*) FROM counterfoil.decoding WHERE suspect_first IS NOT NULL") == 0
    works.relay()
    for place in ("worker.decoding", "worker.decoding_alone@3", "worker.decoding_alone@7"):
        name, _, nth = place.partition("@")
        killed = _worker(works, victims, f"{name}=kill@{nth or 1}", wait=False)
        killed.reached(name, within=60)
        assert killed.wait(60) == -9
    worker = _worker(works, victims)
    works.settled(in_batches, confirmed=20)
    assert works.raw() == []
    marked = "SELECT count(*) FROM counterfoil.decoding WHERE first_offset IS NOT NULL"
    eventually(lambda: works.ledger.one(marked) == 0, what="the end of decoding")
    assert worker.terminate() == 0
