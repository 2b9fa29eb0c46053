"""The relay: a backlog of commands, committed at once, from that commit to the last durable note.

Beside it, the plain loop: SELECT … FOR UPDATE SKIP LOCKED LIMIT 2000, produce, flush, DELETE, holding its connection.
"""

import time

from confluent_kafka import Producer
from sqlalchemy import text

from counterfoil.bench.declared import shipments, show_shipment
from counterfoil.bench.enqueueing import fill
from counterfoil.bench.figure import Figures, Round, rate
from counterfoil.bench.stage import Bed, Stage
from counterfoil.enqueue import enqueue_prepared, prepare

BATCH = 2000
PLAIN = "SELECT … FOR UPDATE SKIP LOCKED LIMIT 2000 with the payloads, produce, flush, DELETE"
#: An idle relay looks this often, so that its wait is not what is measured.
POLL = "20ms"
AHEAD = 900_000_000  #: numbers that no backlog has
EMPTY = text("SELECT NOT EXISTS (SELECT 1 FROM counterfoil.outbox)")
NOW = text("SELECT clock_timestamp()")
NOTED = text("SELECT count(*), max(at) FROM counterfoil.published WHERE at > :since")
SELECT = text("""SELECT o.shard, o.id, o.key, p.value FROM counterfoil.outbox o
    JOIN counterfoil.payload p ON p.number = o.number AND p.revision = o.revision
    ORDER BY o.shard, o.id LIMIT :batch FOR UPDATE OF o SKIP LOCKED""")
DELETE = text(
    "DELETE FROM counterfoil.outbox WHERE (shard, id) IN (SELECT * FROM unnest(CAST(:s AS int2[]), CAST(:i AS int8[])))"
)


def relay(stage: Stage, operations: int, rounds: int) -> Figures:
    """Rows a second from the outbox into the topic, each noted by its own delivery report."""
    measured, first = [], 0
    with stage.bed("relay") as bed:
        for _ in range(rounds):
            ours = _ours(bed, first, operations)
            fill(bed, first + operations, operations)
            plain = operations / plain_relay(bed, bed.topic("show_shipment", "commands"))
            measured.append(Round(ours, plain))
            first += 2 * operations
    return {"relay": rate(measured, PLAIN)}


def _ours(bed: Bed, first: int, operations: int) -> float:
    with bed.engine.connect() as connection:
        ready = prepare(connection, show_shipment, shipments(first, operations))
    with bed.running("relay", relay_poll_max=POLL) as process:
        fill(bed, AHEAD + first, 1)
        bed.wait(process, lambda: is_empty(bed), "the first row")
        with bed.engine.begin() as connection:
            enqueue_prepared(connection, ready)
        with bed.engine.connect() as connection:
            since = connection.execute(NOW).scalar_one()
        bed.wait(process, lambda: is_empty(bed), "the end of the backlog", every=0.2)
    with bed.engine.connect() as connection:
        count, until = connection.execute(NOTED, {"since": since}).one()
    return float(count / (until - since).total_seconds())


def is_empty(bed: Bed) -> bool:
    """Whether every row has left."""
    with bed.engine.connect() as connection:
        return bool(connection.execute(EMPTY).scalar_one())


def plain_relay(bed: Bed, topic: str) -> float:
    """Empties the outbox as a plain loop does; answers the seconds."""
    producer = Producer(
        {
            "bootstrap.servers": bed.brokers,
            "enable.idempotence": True,
            "compression.type": "lz4",
            "linger.ms": 5,
            "queue.buffering.max.messages": 1_000_000,
        }
    )
    start = time.perf_counter()
    while True:
        with bed.engine.begin() as connection:
            rows = connection.execute(SELECT, {"batch": BATCH}).all()
            if not rows:
                break
            for row in rows:
                producer.produce(topic, key=row.key, value=row.value)
            producer.flush()
            connection.execute(DELETE, {"s": [row.shard for row in rows], "i": [row.id for row in rows]})
    return time.perf_counter() - start
