"""The worker: a backlog in the topic, from the first admission to the last offset commit, the relay at rest.

Beside it, the same records by a plain consumer: `consume(2000)`, one upsert a batch (or one a record), commit, no ledger.
"""

import time
from collections.abc import Callable, Sequence
from typing import Any

from confluent_kafka import Consumer, TopicPartition
from sqlalchemy import Connection, text

from counterfoil.bench.declared import Shipment, show_shipment, show_shipment_singly, upsert_row, upsert_rows
from counterfoil.bench.enqueueing import fill
from counterfoil.bench.figure import Figures, Round, rate
from counterfoil.bench.relaying import is_empty
from counterfoil.bench.stage import PATIENCE, Bed, Stage, Stuck
from counterfoil.core.operation_type import OperationType
from counterfoil.demo.processes import Process
from counterfoil.schemas.contract import contract_of

BATCH = 2000
#: One by one is slower: fewer operations, so that the whole stays within its time.
SINGLY = 8
NOW = text("SELECT clock_timestamp()")
COMMITTED = text("""SELECT COALESCE(sum(up_to), 0) FROM (
    SELECT max(up_to) AS up_to FROM counterfoil.acknowledged WHERE topic = :topic GROUP BY partition) p""")
ADMITTED = text("""SELECT count(*) AS operations, min(at) AS first,
        (SELECT max(at) FROM counterfoil.acknowledged WHERE topic = :topic) AS last
    FROM counterfoil.event WHERE kind = 'admitted' AND at > :since""")
CONFIRMED = text("SELECT count(*) FROM counterfoil.state WHERE state = 'confirmed'")

Upsert = Callable[[Connection, Sequence[Shipment]], None]


def worker(stage: Stage, operations: int, rounds: int) -> Figures:
    """`InLedgerBatch`: one upsert for a thousand operations."""
    plain = f"consume({BATCH}), decode, one upsert a batch, commit; no ledger"
    with stage.bed("worker", "BATCHES") as bed:
        return {"worker": rate(_rounds(bed, show_shipment, operations, rounds, upsert_rows), plain)}


def worker_single(stage: Stage, operations: int, rounds: int) -> Figures:
    """`InLedger`: an upsert for each operation."""
    plain = f"consume({BATCH}), decode, one upsert a record in a transaction a batch, commit; no ledger"

    def upsert_each(connection: Connection, rows: Sequence[Shipment]) -> None:
        for row in rows:
            upsert_row(connection, row)

    with stage.bed("worker-single", "SINGLES") as bed:
        few = max(1, operations // SINGLY)
        return {"worker_single": rate(_rounds(bed, show_shipment_singly, few, rounds, upsert_each), plain)}


def _rounds(bed: Bed, operation_type: OperationType[Any], operations: int, rounds: int, upsert: Upsert) -> list[Round]:
    topic = bed.topic(operation_type.name, "commands")
    measured = []
    for number in range(rounds):
        fill(bed, number * operations, operations, operation_type)
        with bed.running("relay") as process:
            bed.wait(process, lambda: is_empty(bed), "the backlog in the topic")
        total = (number + 1) * operations
        ours = _ours(bed, topic, total)
        with bed.engine.begin() as connection:
            connection.execute(text("TRUNCATE shipment"))
        measured.append(Round(ours, _plain(bed, operation_type, number * operations, upsert)))
    return measured


def _ours(bed: Bed, topic: str, total: int) -> float:
    """Operations a second, from the statement that admits the first batch."""
    with bed.engine.connect() as connection:
        since = connection.execute(NOW).scalar_one()
    with bed.running("worker") as process:
        _committed(bed, process, topic, total)
    with bed.engine.connect() as connection:
        if connection.execute(CONFIRMED).scalar_one() != total:
            raise Stuck(f"the worker committed {total} records, but not as many operations are confirmed: see {process.log}")
        row = connection.execute(ADMITTED, {"since": since, "topic": topic}).one()
    return float(row.operations / (row.last - row.first).total_seconds())


def _committed(bed: Bed, process: Process, topic: str, total: int) -> None:
    def all_of_them() -> bool:
        with bed.engine.connect() as connection:
            return bool(connection.execute(COMMITTED, {"topic": topic}).scalar_one() >= total)

    bed.wait(process, all_of_them, "the last offset commit", every=0.1)


def _plain(bed: Bed, operation_type: OperationType[Any], skip: int, upsert: Upsert) -> float:
    """Records a second of a plain consumer, from the arrival of its first batch."""
    topic, decode = bed.topic(operation_type.name, "commands"), contract_of(operation_type).decode
    consumer = Consumer({"bootstrap.servers": bed.brokers, "group.id": f"{bed.name}-plain", "enable.auto.commit": False})
    try:
        _assign_behind(consumer, topic, skip)
        ends = {place.partition: consumer.get_watermark_offsets(place, timeout=10)[1] for place in consumer.assignment()}
        start, count, end = 0.0, 0, time.monotonic() + PATIENCE
        while any(place.offset < ends[place.partition] for place in consumer.position(consumer.assignment())):
            if time.monotonic() > end:
                raise Stuck("the plain consumer did not reach the end of the topic")
            records = consumer.consume(BATCH, timeout=0.05)
            if not records:
                continue
            count += len(records)
            start = start or time.perf_counter()
            with bed.engine.begin() as connection:
                upsert(connection, [decode(record.value() or b"") for record in records])
            consumer.commit(asynchronous=False)
        return count / (time.perf_counter() - start)
    finally:
        consumer.close()


def _assign_behind(consumer: Consumer, topic: str, skip: int) -> None:
    """Begin where the last round of the plain consumer ended; at the beginning in the first one."""
    known = consumer.list_topics(topic, timeout=10).topics[topic].partitions
    places = [TopicPartition(topic, partition) for partition in known]
    committed = consumer.committed(places, timeout=10) if skip else places
    consumer.assign([TopicPartition(topic, place.partition, max(0, place.offset)) for place in committed])
