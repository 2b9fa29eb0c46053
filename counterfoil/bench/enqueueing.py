"""Enqueue in bulk: a thousand operations a transaction, with all checks, and prepared before.

Beside it, a plain INSERT by executemany of the same payloads into one table and one outbox, without a check or a digest.
"""

import time
from collections.abc import Callable
from typing import Any

from sqlalchemy import Connection, text

from counterfoil.bench.declared import Shipment, shipments, show_shipment
from counterfoil.bench.figure import Figures, Round, rate
from counterfoil.bench.stage import Bed, Stage
from counterfoil.core.operation_type import OperationType
from counterfoil.enqueue import enqueue_many, enqueue_prepared, prepare
from counterfoil.schemas.contract import contract_of

BATCH = 1000
PLAIN = "INSERT of an operation and an outbox row each by executemany, no checks, no digests, no events"
TABLES = (
    "CREATE TABLE plain_operation (id text PRIMARY KEY, value bytea NOT NULL, at timestamptz NOT NULL DEFAULT now())",
    "CREATE TABLE plain_outbox (n bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, key text NOT NULL, value bytea NOT NULL)",
)
OPERATION = text("INSERT INTO plain_operation (id, value) VALUES (:id, :value)")
OUTBOX = text("INSERT INTO plain_outbox (key, value) VALUES (:id, :value)")

Write = Callable[[Connection, list[Shipment]], None]


def enqueue(stage: Stage, operations: int, rounds: int) -> Figures:
    """`enqueue_many` with all its checks."""

    def ours(connection: Connection, batch: list[Shipment]) -> None:
        enqueue_many(connection, show_shipment, batch)

    encode = contract_of(show_shipment).encode

    def plain(connection: Connection, batch: list[Shipment]) -> None:
        _insert(connection, [{"id": row.shipment_id, "value": encode(row)} for row in batch])

    with stage.bed("enqueue") as bed:
        return {"enqueue": rate(_pairs(bed, operations, rounds, (ours, plain)), PLAIN)}


def enqueue_ready(stage: Stage, operations: int, rounds: int) -> Figures:
    """`enqueue_prepared`: checked and encoded before the clock starts."""
    encode = contract_of(show_shipment).encode
    measured = []
    with stage.bed("prepared") as bed:
        _make_tables(bed)
        for number in range(rounds):
            batches = _batches(number * operations, operations)
            with bed.engine.connect() as connection:
                ready = [prepare(connection, show_shipment, batch) for batch in batches]
            start = time.perf_counter()
            for prepared in ready:
                with bed.engine.begin() as connection:
                    enqueue_prepared(connection, prepared)
            between = time.perf_counter()
            rows = [[{"id": row.shipment_id, "value": encode(row)} for row in batch] for batch in batches]
            again = time.perf_counter()
            for batch_rows in rows:
                with bed.engine.begin() as connection:
                    _insert(connection, batch_rows)
            measured.append(Round(operations / (between - start), operations / (time.perf_counter() - again)))
    return {"enqueue_prepared": rate(measured, PLAIN)}


def fill(bed: Bed, first: int, count: int, operation_type: OperationType[Shipment] = show_shipment) -> None:
    """A backlog for another part, in transactions of a thousand."""
    for batch in _batches(first, count):
        with bed.engine.begin() as connection:
            enqueue_many(connection, operation_type, batch)


def _pairs(bed: Bed, operations: int, rounds: int, both: tuple[Write, Write]) -> list[Round]:
    _make_tables(bed)
    measured = []
    for number in range(rounds):
        batches = _batches(number * operations, operations)
        ours, plain = (_timed(bed, write, batches) for write in both)
        measured.append(Round(operations / ours, operations / plain))
    return measured


def _timed(bed: Bed, write: Write, batches: list[list[Shipment]]) -> float:
    start = time.perf_counter()
    for batch in batches:
        with bed.engine.begin() as connection:
            write(connection, batch)
    return time.perf_counter() - start


def _insert(connection: Connection, rows: list[dict[str, Any]]) -> None:
    connection.execute(OPERATION, rows)
    connection.execute(OUTBOX, rows)


def _make_tables(bed: Bed) -> None:
    with bed.engine.begin() as connection:
        for statement in TABLES:
            connection.execute(text(statement))


def _batches(first: int, count: int) -> list[list[Shipment]]:
    last = first + count
    return [list(shipments(start, min(BATCH, last - start))) for start in range(first, last, BATCH)]
