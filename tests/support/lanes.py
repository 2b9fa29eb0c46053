"""One lane of a worker in the test's own process: real ledger, threads and lease; its records are made by hand.

Its line to the ledger goes through a proxy that can cut it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from confluent_kafka import Message

from counterfoil import Effect, Operations, OperationType
from counterfoil.core.breaker import Habits
from counterfoil.core.identity import idempotency_key
from counterfoil.ledger.engine import ledger_engine
from counterfoil.ledger.names import ledger_of
from counterfoil.parts import FaultProxy
from counterfoil.reporting import writer_of
from counterfoil.schemas.envelope import Command, command_headers, source
from counterfoil.streams.ledger_calls import LedgerCalls
from counterfoil.streams.worker.admitting import Admitting, Desk
from counterfoil.streams.worker.decoding import Decoding
from counterfoil.streams.worker.gates import Gates
from counterfoil.streams.worker.in_hand import InHand
from counterfoil.streams.worker.in_ledger import InLedgerWork
from counterfoil.streams.worker.keeper import Keeper
from counterfoil.streams.worker.lane import InLedgerLane, Lane, Means, OutsideLane
from counterfoil.streams.worker.lease import Lease
from counterfoil.streams.worker.record import Record
from counterfoil.streams.worker.runnable import runnable_types, topics_of
from counterfoil.streams.worker.slots import Slots
from counterfoil.streams.worker.threads import Threads
from tests.support.ledgers import Bed
from tests.support.stock import rules_of
from tests.support.waiting import eventually

HABITS = Habits(after=10, wait=timedelta(seconds=5))


@dataclass
class Line:
    """The lane, and the proxy that its operations' transactions go through; lease and marks have connections of their own."""

    ledger: Bed
    proxy: FaultProxy
    operation_type: OperationType[Any]
    desk: Desk
    lane: Lane
    failed: list[BaseException]
    topic: str

    async def work_off(self) -> None:
        """Hand a command record of every operation of the type to the lane, and wait until each is finished."""
        place = (self.topic, 0)
        self.desk.in_hand.assign([place])
        records = self._records()
        self.desk.in_hand.take(self.operation_type.name, records)
        self.lane.take(records)
        await asyncio.to_thread(
            eventually,
            lambda: self.failed or self.desk.in_hand.positions()[place][0] == len(records),
            what="every record finished",
        )
        assert not self.failed

    def _records(self) -> list[Record]:
        prefix = self.desk.in_hand.prefix((self.topic, 0))
        assert prefix is not None
        query = """SELECT o.number, o.operation_id, o.entity, p.value FROM counterfoil.operation o
            JOIN counterfoil.payload p USING (number) WHERE o.type = :type ORDER BY o.number"""
        records = []
        for offset, row in enumerate(self.ledger.rows(query, type=self.operation_type.name)):
            key = idempotency_key(row["operation_id"], 1, 0)
            command = Command(row["number"], row["operation_id"], self.operation_type.name, 1, key, 1)
            message = Message(
                topic=self.topic,
                partition=0,
                offset=offset,
                key=row["entity"].encode(),
                value=bytes(row["value"]),
                headers=[*command_headers(source(self.ledger.name), command)],
            )
            records.append(Record(message, prefix, offset, len(row["value"])))
        return records


@contextmanager
def cut_line(ledger: Bed, operation_type: OperationType[Any], proxy: FaultProxy) -> Iterator[Line]:
    """A lane whose ledger is reached through the proxy."""
    engine = ledger_engine(ledger.server.url_of(ledger.database.name, port=proxy.port))
    [type_] = runnable_types(
        Operations(operation_type),
        rules_of,
        progress_within=timedelta(seconds=120),
        batch=100,
        lock=None,
    )
    failed: list[BaseException] = []
    lease = Lease(LedgerCalls(ledger.engine, 20.0), "cut", timedelta(seconds=30), {})
    lease.open()
    with ledger.engine.begin() as connection:
        writer = writer_of(ledger_of(connection))
    calls, in_hand = LedgerCalls(engine, 20.0), InHand(1000)
    decoding = Decoding(LedgerCalls(ledger.engine, 20.0), lambda: lease.session, in_hand)
    desk = Desk(calls, writer, lease, in_hand, decoding, timedelta(days=7), timedelta(days=14))
    topics = topics_of(ledger.name, [type_])
    admitting = Admitting(desk, type_, topics)
    with ThreadPoolExecutor(2) as pool:
        gates = Gates([type_], HABITS.after)
        Keeper(desk.calls, lease, gates, HABITS).open()
        means = Means(pool, pool, 2, Slots(64, 16, gates), Threads(16), failed.append)
        lane: Lane
        if isinstance(type_.effect, Effect):
            lane = OutsideLane(desk, type_, admitting, means)
        else:
            lane = InLedgerLane(type_, InLedgerWork(desk, type_, admitting), means)
        yield Line(ledger, proxy, operation_type, desk, lane, failed, f"{ledger.name}.{operation_type.name}.commands")
    lease.close()
    engine.dispose()
