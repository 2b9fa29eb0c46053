"""Times: from a caller's commit to Kafka at 500 commits a second, and from enqueue to settled at 100 a second.

Commits are timed by the database itself, arrivals by a consumer on the same machine. Beside the relay, a plain loop that looks
every 5 ms.
"""

import multiprocessing
import time
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from datetime import datetime
from multiprocessing.synchronize import Event
from statistics import median
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition
from sqlalchemy import text

from counterfoil.bench.callers import Pace, calling
from counterfoil.bench.enqueueing import fill
from counterfoil.bench.figure import Figures, percentile
from counterfoil.bench.relaying import AHEAD, BATCH, DELETE
from counterfoil.bench.stage import PATIENCE, Bed, Stage, Stuck
from counterfoil.demo.processes import Process
from counterfoil.ledger.engine import ledger_engine

SECONDS = 6  #: of one round
COMMITS = Pace(callers=4, per_s=500, operations=500 * SECONDS)
SETTLED = Pace(callers=1, per_s=100, operations=100 * SECONDS)
PLAIN = "the same callers, and a loop that looks every 5 ms: SELECT, produce, flush, DELETE"
PLAIN_POLL = 0.005  # seconds
COMMITTED_AT = text("""SELECT CAST(operation_id AS text), pg_xact_commit_timestamp(xmin) FROM counterfoil.operation
    WHERE number > :after""")
SETTLED_AFTER = text("""SELECT pg_xact_commit_timestamp(s.xmin) - pg_xact_commit_timestamp(o.xmin)
    FROM counterfoil.operation o JOIN counterfoil.state s USING (number) WHERE o.number > :after AND s.state = 'confirmed'""")
NEWEST = text("SELECT COALESCE(max(number), 0) FROM counterfoil.operation")
READ = text("""SELECT o.shard, o.id, o.key, CAST(o.operation_id AS text) AS operation_id, p.value FROM counterfoil.outbox o
    JOIN counterfoil.payload p ON p.number = o.number AND p.revision = o.revision
    ORDER BY o.shard, o.id LIMIT :batch FOR UPDATE OF o SKIP LOCKED""")


def latency(stage: Stage, operations: int, rounds: int) -> Figures:
    """Commit → Kafka, in milliseconds; the relay with its own settings."""
    ours, plain = [], []
    with stage.bed("latency") as bed, _arrivals(bed) as consumer:
        for number in range(rounds + 1):  # the first one warms Kafka, and does not count
            with bed.running("relay") as process:
                ours.append(_times(bed, consumer, 2 * number, process))
            with _plain_loop(bed):
                plain.append(_times(bed, consumer, 2 * number + 1, None))
        ours, plain = ours[1:], plain[1:]
    told: dict[str, Any] = {}
    for name, share in (("p50", 0.5), ("p99", 0.99)):
        found, beside = ([percentile(times, share) for times in side] for side in (ours, plain))
        told[f"{name}_ms"] = round(median(found), 1)
        told[f"{name}_rounds"] = [round(one, 1) for one in found]
        told[f"plain_{name}_ms"] = round(median(beside), 1)
    ratios = [percentile(mine, 0.5) / percentile(other, 0.5) for mine, other in zip(ours, plain, strict=True)]
    return {"latency": told | {"ratio": round(median(ratios), 3), "plain": PLAIN}}


def settled(stage: Stage, operations: int, rounds: int) -> Figures:
    """Commit of the enqueue → commit of the settle, in milliseconds; relay and worker with their own settings."""
    halves, tails = [], []
    with stage.bed("settled") as bed, bed.running("relay"), bed.running("worker") as process:
        for number in range(-1, rounds):  # the first round lets both start
            times = _settled_times(bed, number, process)
            if number >= 0:
                halves.append(percentile(times, 0.5))
                tails.append(percentile(times, 0.99))
    return {"settled": {"p50_ms": round(median(halves), 1), "p99_ms": round(median(tails), 1)}}


def _times(bed: Bed, consumer: Consumer, number: int, process: Process | None) -> list[float]:
    end = time.monotonic() + PATIENCE
    fill(bed, AHEAD + number, 1)
    while (record := consumer.poll(0.1)) is None or record.error() is not None:  # it sends
        _look([], process, end)
    after = _newest(bed)
    arrived: dict[str, float] = {}
    with calling(bed.url, COMMITS, number * COMMITS.operations) as callers:
        while len(arrived) < COMMITS.operations:
            record = consumer.poll(0.1)
            if record is not None and record.error() is None:
                arrived.setdefault(_operation(record.headers()), time.time())
            _look(callers, process, end)
    with bed.engine.connect() as connection:
        rows = connection.execute(COMMITTED_AT, {"after": after}).all()
    return [_milliseconds(arrived[operation_id], at) for operation_id, at in rows]


def _settled_times(bed: Bed, number: int, process: Process) -> list[float]:
    after = _newest(bed)
    with calling(bed.url, SETTLED, (number + 1) * SETTLED.operations) as callers:
        for caller in callers:
            caller.result(PATIENCE)
    found: list[Any] = []

    def all_of_them() -> bool:
        with bed.engine.connect() as connection:
            found[:] = connection.execute(SETTLED_AFTER, {"after": after}).scalars()
        return len(found) == SETTLED.operations

    bed.wait(process, all_of_them, "the last operation's end", every=0.5)
    return [span.total_seconds() * 1000 for span in found]


@contextmanager
def _arrivals(bed: Bed) -> Iterator[Consumer]:
    topic = bed.topic("show_shipment", "commands")
    consumer = Consumer({"bootstrap.servers": bed.brokers, "group.id": f"{bed.name}-arrivals", "fetch.wait.max.ms": 10})
    try:
        partitions = consumer.list_topics(topic, timeout=10).topics[topic].partitions
        consumer.assign([TopicPartition(topic, partition, 0) for partition in partitions])
        yield consumer
    finally:
        consumer.close()


@contextmanager
def _plain_loop(bed: Bed) -> Iterator[None]:
    context = multiprocessing.get_context("spawn")
    stop = context.Event()
    process = context.Process(target=_relay_plainly, args=(bed.url, bed.brokers, bed.topic("show_shipment", "commands"), stop))
    process.start()
    try:
        yield
    finally:
        stop.set()
        process.join(20)


def _relay_plainly(url: str, brokers: str, topic: str, stop: Event) -> None:
    engine = ledger_engine(url, pool_size=1)
    producer = Producer({"bootstrap.servers": brokers, "enable.idempotence": True, "compression.type": "lz4", "linger.ms": 0})
    while not stop.wait(PLAIN_POLL):
        with engine.begin() as connection:
            rows = connection.execute(READ, {"batch": BATCH}).all()
            for row in rows:
                producer.produce(topic, key=row.key, value=row.value, headers=[("ce_id", row.operation_id)])
            if rows:
                producer.flush()
                connection.execute(DELETE, {"s": [row.shard for row in rows], "i": [row.id for row in rows]})
    engine.dispose()


def _look(callers: list[Future[float]], process: Process | None, end: float) -> None:
    if process is not None:
        process.must_run()
    for caller in callers:
        if caller.done():
            caller.result()
    if time.monotonic() > end:
        raise Stuck("the last record did not arrive")


def _operation(headers: Any) -> str:
    return next(bytes(value).decode() for name, value in headers or () if name == "ce_id")


def _milliseconds(arrived: float, committed: datetime) -> float:
    return (arrived - committed.timestamp()) * 1000


def _newest(bed: Bed) -> int:
    with bed.engine.connect() as connection:
        return int(connection.execute(NEWEST).scalar_one())
