"""Operation types with effects inside and outside the ledger, workers of a test, and what they have made of its operations."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson
from confluent_kafka import Producer
from sqlalchemy import Connection, text

from counterfoil import (
    RECEIPT,
    Attempt,
    ByKey,
    Effect,
    Errors,
    Expected,
    InLedger,
    InLedgerBatch,
    Item,
    NotAtAll,
    Observation,
    Operations,
    OperationType,
    Proof,
    Receipt,
    Retry,
    Sink,
    Target,
    Unknown,
    Unordered,
    enqueue_many,
    hours,
    seconds,
)
from counterfoil.core.effect import Backoff
from counterfoil.core.identity import idempotency_key
from counterfoil.schemas.envelope import Command, command_headers, source
from counterfoil.sinks.fake import FakeClient, Mapped, fake_adapter
from counterfoil.streams.worker.consumer import group_of
from examples.upsert_projection import UPSERT, Stock
from examples.upsert_projection import upsert_projection as by_version
from tests.support.ledgers import Bed
from tests.support.processes import CommandLine, Started
from tests.support.topics import Topics
from tests.support.waiting import eventually

MODULE = "tests.support.worked:OPERATIONS"
SINK_URL = "WORKED_SINK_URL"  #: variable: where the fake sink listens
STOCK_VIEW = """CREATE TABLE stock_view (sku text PRIMARY KEY, version bigint NOT NULL, on_hand bigint NOT NULL);
CREATE TABLE stock_log (sku text NOT NULL, attempt int NOT NULL)"""
LOG = text("INSERT INTO stock_log (sku, attempt) VALUES (:sku, :attempt)")


class Busy(Exception):
    """Certainly not applied; later may differ."""


class Rejected(Exception):
    """Certainly not applied, and repeating cannot help."""


@dataclass(frozen=True)
class OnHand:
    on_hand: int


ERRORS = Errors(temporary=(Busy,), permanent=(Rejected,), codes=FakeClient.codes)
SOON = Retry(max_tries=3, backoff=Backoff(seconds(0.1), cap=seconds(0.2)))
ORDER = Unordered[Stock](lambda s: (s.sku, s.version))


def _misbehave(sku: str) -> None:
    if sku.startswith("busy"):
        raise Busy
    if sku.startswith("rejected"):
        raise Rejected
    if sku.startswith("odd"):
        raise ValueError(sku)


def log_many(connection: Connection, items: Sequence[Item[Stock]]) -> None:
    rows = [{"sku": i.payload.sku, "version": i.payload.version, "on_hand": i.payload.on_hand} for i in items]
    connection.execute(UPSERT, rows)
    connection.execute(LOG, [{"sku": i.payload.sku, "attempt": i.attempt.number} for i in items])
    for item in items:
        _misbehave(item.payload.sku)


def _log_one(connection: Connection, stock: Stock, attempt: Attempt) -> None:
    connection.execute(UPSERT, {"sku": stock.sku, "version": stock.version, "on_hand": stock.on_hand})
    connection.execute(LOG, {"sku": stock.sku, "attempt": attempt.number})
    _misbehave(stock.sku)
    if stock.sku.startswith("commits"):
        connection.commit()


def _push(stock: Stock, attempt: Attempt) -> Receipt:
    _misbehave(stock.sku)
    if stock.sku.startswith(("deaf", "late")):
        time.sleep(60 if stock.sku.startswith("deaf") else 5.5)  # past the time-out that it was handed
    return FakeClient(os.environ[SINK_URL]).append(stock.sku, {"on_hand": stock.on_hand}, attempt)


def _expected(stock: Stock) -> Expected[OnHand]:
    return Expected(OnHand(stock.on_hand))


def _unknown(target: Target[Stock]) -> Observation[OnHand]:
    return Unknown()


def _type(name: str, **rest: Any) -> OperationType[Stock]:
    given: dict[str, Any] = {
        "owner": "tests",
        "payload": Stock,
        "contract": by_version.contract,
        "order": ORDER,
        "proof": RECEIPT,
    }
    return OperationType[Stock](name=name, **{**given, **rest})


#: No repeat is harmless and nothing is probed here: one request an operation, or a person's turn.
ONCE = Sink("once", NotAtAll(), request_life=seconds(1), read_lag=seconds(0))
KEYED = Sink("keyed", ByKey(hours(24)), request_life=seconds(1), read_lag=seconds(0))
_ADAPTER = fake_adapter(
    KEYED,
    lambda: os.environ[SINK_URL],
    Mapped[Stock, OnHand](lambda s: s.sku, lambda s: {"on_hand": s.on_hand}, lambda fields: OnHand(fields["on_hand"])),
)

in_batches = _type("in_batches", effect=InLedgerBatch(log_many, size=100, errors=ERRORS, retry=SOON))
one_by_one = _type("one_by_one", effect=InLedger(_log_one, errors=ERRORS, retry=SOON))
push = _type(
    "push",
    effect=Effect(_push, ONCE, timeout=seconds(4), errors=ERRORS, retry=SOON),
    proof=Proof[Stock, OnHand](_expected, _unknown),
)
push_async = _type("push_async", effect=Effect(_ADAPTER.effect, KEYED, timeout=seconds(4), errors=ERRORS, retry=SOON), proof=None)
OPERATIONS = Operations(in_batches, one_by_one, push, push_async)

#: Short enough for a test, long enough for a busy machine.
QUICK = {
    "operations": MODULE,
    "lease": "4s",
    "due_every": "200ms",
    "resend_after": "2s",
    "send_grace": "1s",
    "shutdown_grace": "8s",
    "stop_after": "5s",
    "in_ledger_time": "10s",
    "relay_lease": "3s",
    "relay_delivery_timeout": "3s",
    "relay_floor_every": "500ms",
    "kafka": '{"session.timeout.ms": "3000", "heartbeat.interval.ms": "500"}',
}


#: Why a test that waits in vain does so: what is not at its end, and where it stands between ledger, outbox and topic.
UNSETTLED = """
SELECT o.type, s.state, s.attempt, s.reason, s.record_road, s.record_partition, s.record_offset,
    s.due_at - counterfoil.ledger_time() AS due, s.sent_at - counterfoil.ledger_time() AS sent,
    (SELECT count(*) FROM counterfoil.outbox b WHERE b.number = s.number) AS in_outbox,
    (SELECT string_agg(concat(p.kind, ' ', p.partition, '/', p.record_offset), ', ') FROM counterfoil.published p
        WHERE p.number = s.number) AS published
FROM counterfoil.state s JOIN counterfoil.operation o USING (number)
WHERE s.state IN ('queued', 'running', 'retry_wait', 'quarantined') ORDER BY s.number LIMIT 5
"""


@dataclass
class Works:
    """The workers and the relay of one test, and what the ledger says."""

    line: CommandLine
    ledger: Bed
    topics: Topics
    sink_url: str = ""

    def prepare(self) -> None:
        """The topics, and the tables that effects in the ledger write."""
        self.topics.make(*(each.name for each in OPERATIONS.types))
        with self.ledger.engine.begin() as connection:
            for statement in STOCK_VIEW.split(";"):
                connection.execute(text(statement))

    def relay(self) -> Started:
        relay = self.line.start("relay", "--json", failpoints="", environment=None, **{**QUICK, "shutdown_grace": "3s"})
        relay.printed('"lease_taken"')
        return relay

    def worker(
        self, *, failpoints: str = "", wait: bool = True, environment: Mapping[str, str] | None = None, **settings: str
    ) -> Started:
        environment = {SINK_URL: self.sink_url, **(environment or {})}
        worker = self.line.start("worker", "--json", failpoints=failpoints, environment=environment, **{**QUICK, **settings})
        if wait:
            worker.printed('"started"')
        return worker

    def enqueue(self, operation_type: OperationType[Stock], skus: Sequence[str]) -> None:
        with self.ledger.engine.begin() as connection:
            enqueue_many(connection, operation_type, [Stock(sku, 1, number) for number, sku in enumerate(skus)])

    def states(self, operation_type: OperationType[Stock]) -> Counter[str]:
        """How many operations of the type are in each state."""
        return Counter(each["state"] for each in self.rows(operation_type))

    def rows(self, operation_type: OperationType[Stock]) -> list[dict[str, Any]]:
        query = """SELECT o.number, o.operation_id, o.entity, s.* FROM counterfoil.operation o
            JOIN counterfoil.state s USING (number) WHERE o.type = :type ORDER BY o.number"""
        return self.ledger.rows(query, type=operation_type.name)

    def settled(self, operation_type: OperationType[Stock], within: float = 60, **states: int) -> None:
        """Wait until the operations of the type are in these states."""
        seen: list[Counter[str]] = []

        def there() -> bool:
            seen[:] = [self.states(operation_type)]
            return seen[0] == Counter(states)

        try:
            eventually(there, within=within, what=operation_type.name)
        except AssertionError:
            told = "\n".join(str(row) for row in self.ledger.rows(UNSETTLED))
            raise AssertionError(f"{operation_type.name}: {dict(seen[0])} instead of {states} in {within:g} s\n{told}") from None

    def kinds(self, kind: str) -> int:
        """How many events of the kind there are."""
        return int(self.ledger.one("SELECT count(*) FROM counterfoil.event WHERE kind = :kind", kind=kind))

    def logged(self) -> Counter[str]:
        """How often each article was written by an effect in the ledger."""
        return Counter(each["sku"] for each in self.ledger.rows("SELECT sku FROM stock_log"))

    def committed(self, operation_type: OperationType[Stock], road: str = "commands") -> int:
        """The sum of the group's committed offsets on a road."""
        topic = self.topics.name(operation_type.name, road)
        return sum(self.topics.committed(group_of(self.ledger.name), topic).values())

    def commands(self, operation_type: OperationType[Stock]) -> list[tuple[bytes, bytes, Command]]:
        """Key, value and headers' content of each operation's command record, for tests that send records themselves."""
        query = """SELECT o.number, o.operation_id, o.entity, p.value FROM counterfoil.operation o
            JOIN counterfoil.payload p USING (number) WHERE o.type = :type ORDER BY o.number"""
        return [
            (
                row["entity"].encode(),
                bytes(row["value"]),
                Command(
                    row["number"], row["operation_id"], operation_type.name, 1, idempotency_key(row["operation_id"], 1, 0), 1
                ),
            )
            for row in self.ledger.rows(query, type=operation_type.name)
        ]

    def send(self, topic: str, records: Sequence[tuple[bytes | None, bytes | None, Command | None]]) -> None:
        """Put records on a topic, past the relay."""
        producer = Producer({"bootstrap.servers": self.topics.bootstrap, "message.max.bytes": 40_000_000})
        for key, value, command in records:
            producer.produce(topic, value, key, headers=self.headers(command) if command else None)
        assert producer.flush(30) == 0

    def headers(self, command: Command) -> list[tuple[str, str | bytes | None]]:
        """As the relay would make them."""
        return [*command_headers(source(self.ledger.name), command)]

    def raw(self) -> list[dict[str, Any]]:
        return self.ledger.rows("SELECT * FROM counterfoil.raw_record ORDER BY topic, partition, record_offset")


def lines(started: Started) -> list[dict[str, Any]]:
    """What a process has logged."""
    return [orjson.loads(line) for line in started.output.splitlines() if line.startswith("{")]
