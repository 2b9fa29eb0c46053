"""Records that no worker can or may run: undecodable, forged, unknown, newer, copied; on real PostgreSQL and Kafka."""

from __future__ import annotations

import subprocess
import sys
from uuid import uuid4

import pytest
from confluent_kafka import Producer
from sqlalchemy import text

from counterfoil.streams.worker.consumer import group_of, watching_consumer
from counterfoil.streams.worker.in_hand import InHand
from counterfoil.streams.worker.progress import Progress
from counterfoil.streams.worker.watch import Patience, ProgressWatch
from tests.support.ledgers import Bed
from tests.support.processes import CommandLine
from tests.support.topics import Topics
from tests.support.waiting import eventually
from tests.support.worked import Works, in_batches, lines, one_by_one

REASONS = (
    "undecodable_frame",
    "undecodable_frame",
    "undecodable_frame",
    "null_value",
    "value_too_large",
    "undecodable_frame",
    "undecodable_value",
)


@pytest.fixture
def works(command_line: CommandLine, ledger: Bed, topics: Topics) -> Works:
    made = Works(command_line, ledger, topics)
    topics.create({topics.name("in_batches", "commands"): {"max.message.bytes": "30000000"}}, partitions=1)
    made.prepare()
    return made


def _commands(works: Works) -> str:
    return works.topics.name("in_batches", "commands")


def _ended(works: Works, records: int) -> None:
    """Everything below the end is committed."""
    eventually(lambda: works.committed(in_batches) == records, within=60, what=f"commit of {records} records")


def test_poison_is_kept_raw_with_its_dead_letter_before_its_offset_is_passed_and_the_rest_is_processed(works: Works) -> None:
    """D26, S6, S12, S18: bytes of every kind; nothing is skipped in silence and nothing stops."""
    works.enqueue(in_batches, [f"sku-{n}" for n in range(5)])
    good = works.commands(in_batches)
    frame = good[0][1][:5]
    poison = [b"{not json", b"\xff", b"", None, b"[" * 20_000_000, b"\x00" * 3, frame + b"\xff" * 40]
    records = [(key, value, command) for key, value, command in good]
    mixed = records[:2] + [(b"k", value, records[2][2]) for value in poison] + [(b"k", b"no headers", None)] + records[2:]
    works.send(_commands(works), mixed)
    worker = works.worker()
    works.settled(in_batches, confirmed=5)
    _ended(works, len(mixed))
    kept = works.raw()
    assert {row["status"] for row in kept} == {"quarantined"}
    assert [row["value"] if row["value"] is None else bytes(row["value"]) for row in kept] == [*poison, b"no headers"]
    assert [row["reason"] for row in kept] == [*REASONS, "undecodable_frame"]
    letters = works.ledger.rows("SELECT value, headers FROM counterfoil.outbox WHERE kind = 'dead_letter'")
    assert len(letters) == len(kept)
    assert {dict(row["headers"])["cf_cause"] for row in letters} == {str(row["id"]) for row in kept}
    assert worker.terminate() == 0
    assert len([line for line in lines(worker) if line["event"] == "quarantined"]) == len(kept)
    counted = [line for line in lines(worker) if line.get("counter") == "records_kept_raw"]
    assert sum(line["count"] for line in counted) == len(kept)


def test_a_header_whose_name_is_no_utf8_is_kept_raw_and_the_worker_goes_on(works: Works) -> None:
    """D26, S6, S12, L2: the client fails for such a name, in a way that a call that has often been made does not notice."""
    worker = works.worker()
    works.enqueue(in_batches, [f"sku-{n}" for n in range(100)])
    works.send(_commands(works), [*works.commands(in_batches)])
    works.settled(in_batches, confirmed=100)
    command = [sys.executable, "-m", "tests.support.foreign_header", works.topics.bootstrap, _commands(works)]
    subprocess.run(command, check=True, timeout=60)
    _ended(works, 101)
    (kept,) = works.raw()
    assert (kept["status"], kept["reason"], bytes(kept["value"])) == ("quarantined", "undecodable_frame", b"value")
    works.send(_commands(works), works.commands(in_batches)[:1])
    _ended(works, 102)
    assert worker.terminate() == 0


def test_records_that_come_again_after_they_were_kept_are_kept_once(works: Works) -> None:
    """D26, S12: a crash between keeping and committing delivers them again."""
    works.send(_commands(works), [(b"k", b"\xff", None)] * 3)
    works.worker(failpoints="worker.before_commit=kill").wait(40)
    assert len(works.raw()) == 3
    works.worker()
    _ended(works, 3)
    assert len(works.raw()) == 3
    assert works.ledger.one("SELECT count(*) FROM counterfoil.outbox WHERE kind = 'dead_letter'") == 3


def test_a_record_that_the_ledger_does_not_know_is_held_and_never_run(works: Works) -> None:
    """S5, S6."""
    works.enqueue(in_batches, ["a"])
    ((key, value, command),) = works.commands(in_batches)
    works.send(_commands(works), [(key, value, command._replace(number=987_654_321, operation_id=uuid4()))])
    works.worker()
    _ended(works, 1)
    (kept,) = works.raw()
    assert (kept["status"], kept["reason"], kept["number"]) == ("held", "unknown_operation_record", None)
    assert works.states(in_batches) == {"queued": 1}
    assert not works.logged()


def test_a_forged_record_with_a_known_id_changes_nothing_of_its_operation(works: Works) -> None:
    """S8, D58: only the ledger's own bytes are run, whatever the headers say; the genuine record beside it is."""
    works.enqueue(in_batches, ["a", "b"])
    (one, two) = works.commands(in_batches)
    forged = (one[0], two[1], one[2])
    foreign = works.commands(one_by_one)
    assert not foreign
    works.send(_commands(works), [forged, one, forged, two])
    works.worker()
    works.settled(in_batches, confirmed=2)
    _ended(works, 4)
    kept = works.raw()
    assert {(row["status"], row["reason"]) for row in kept} == {("quarantined", "digest_mismatch")}
    assert set(works.logged().items()) == {("a", 1), ("b", 1)}


def test_copies_of_one_record_in_one_batch_and_in_later_ones_are_completed(works: Works) -> None:
    """S1, D05, D58: the same operation many times, one effect."""
    works.enqueue(in_batches, ["a", "b"])
    records = works.commands(in_batches)
    works.send(_commands(works), records * 20)
    works.worker()
    works.settled(in_batches, confirmed=2)
    _ended(works, 40)
    works.send(_commands(works), records * 2)
    _ended(works, 44)
    assert set(works.logged().items()) == {("a", 1), ("b", 1)}
    assert {row["attempt"] for row in works.rows(in_batches)} == {1}


def test_a_newer_contract_version_is_held_for_a_worker_that_reads_it(works: Works) -> None:
    """S6: not given up, not run, and its operation waits."""
    works.enqueue(in_batches, ["a"])
    ((key, value, command),) = works.commands(in_batches)
    known_and_not_read = b"\x00\x00\x00\x00\x01" + value[5:]  # another subject's id of the same lock
    _own_bytes(works, known_and_not_read)
    works.send(_commands(works), [(key, known_and_not_read, command)])
    works.worker()
    _ended(works, 1)
    (kept,) = works.raw()
    assert (kept["status"], kept["reason"], kept["number"]) == ("held", "schema_not_read", command.number)
    assert works.states(in_batches) == {"queued": 1}


def test_an_operation_whose_own_bytes_cannot_be_decoded_is_quarantined_and_not_sent_for_ever(works: Works) -> None:
    """D26, D47, S12: one cause and one dead letter, of the operation itself."""
    works.enqueue(in_batches, ["a"])
    ((key, value, command),) = works.commands(in_batches)
    broken = value[:5] + b"\xff\xff\xff"
    _own_bytes(works, broken)
    works.send(_commands(works), [(key, broken, command)])
    worker = works.worker()
    _ended(works, 1)
    works.settled(in_batches, quarantined=1)
    assert works.rows(in_batches)[0]["reason"] == "undecodable_value"
    (line,) = [one for one in lines(worker) if one["event"] == "quarantined"]
    assert (line["level"], line["state"], line["reason"]) == ("info", "quarantined", "undecodable_value")
    assert line["operation_id"] == str(works.ledger.one("SELECT operation_id FROM counterfoil.operation"))
    assert works.raw() == []
    assert works.ledger.one("SELECT count(*) FROM counterfoil.outbox WHERE kind = 'dead_letter'") == 1


def _own_bytes(works: Works, value: bytes) -> None:
    """As if a caller with another contract had written them."""
    with works.ledger.engine.begin() as connection:
        connection.execute(text("UPDATE counterfoil.payload SET value = :v, value_hash = sha256(:v)"), {"v": value})


def test_offsets_missing_from_a_transactional_topic_leave_no_lag(works: Works) -> None:
    """D25: aborted records and control records are passed, and the committed offset reaches the end."""
    works.enqueue(in_batches, [f"sku-{n}" for n in range(6)])
    records = works.commands(in_batches)
    producer = Producer({"bootstrap.servers": works.topics.bootstrap, "transactional.id": f"{works.ledger.name}-t"})
    producer.init_transactions(30)
    for number, (key, value, command) in enumerate(records):
        producer.begin_transaction()
        producer.produce(_commands(works), value, key, headers=works.headers(command), partition=0)
        producer.flush(10)
        if number % 2:
            producer.abort_transaction(10)
        else:
            producer.commit_transaction(10)
    works.worker()
    works.settled(in_batches, confirmed=3, queued=3)
    _ended(works, 12)


def test_a_partition_that_is_never_worked_on_is_noticed(works: Works) -> None:
    """D28, D32, L6: by the broker's own end of each partition, whatever the consumer thinks."""
    works.enqueue(in_batches, ["a"])
    works.send(_commands(works), works.commands(in_batches))
    consumer = watching_consumer(works.ledger.name, works.topics.bootstrap, {})
    try:
        hands = InHand(10)
        hands.assign([(_commands(works), 0)])
        watch = ProgressWatch(consumer, hands, Patience({_commands(works): 0.0}, lambda topic: False))
        assert isinstance(watch._progress, Progress)
        assert watch.look() == []
        assert watch.look() == [(_commands(works), 0)]
        by_order = ProgressWatch(consumer, hands, Patience({_commands(works): 0.0}, lambda topic: topic == _commands(works)))
        assert [by_order.look(), by_order.look()] == [[], []], "paused, or its sink down: that is no fault of the worker"
    finally:
        consumer.close()
    assert group_of(works.ledger.name) == f"{works.ledger.name}.workers"
