"""Outbox rows written by hand, with the operations behind them, and what a relay has made of them."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, text

from counterfoil import Operations
from counterfoil.core.shards import shard
from tests.support.ledgers import Bed
from tests.support.processes import CommandLine, Started
from tests.support.stock import upsert_projection
from tests.support.topics import Topics
from tests.support.waiting import eventually

OPERATIONS = Operations(upsert_projection)
MODULE = "tests.support.relayed:OPERATIONS"
TYPE = upsert_projection.name
#: Short enough for a test, long enough for a busy machine.
QUICK = {
    "operations": MODULE,
    "relay_lease": "3s",
    "relay_delivery_timeout": "3s",
    "relay_floor_every": "500ms",
    "topics_verified_every": "2s",
    "shutdown_grace": "10s",
}

_OPERATION = text(
    """
WITH o AS (
    INSERT INTO counterfoil.operation (operation_id, type, entity, digest, digest_secret, created_at)
    VALUES (:id, :type, :entity, '\\x00', 1, counterfoil.ledger_time()) RETURNING number
), p AS (
    INSERT INTO counterfoil.payload (number, revision, value, value_hash, created_at)
    SELECT number, 1, :value, :hash, counterfoil.ledger_time() FROM o
), s AS (
    INSERT INTO counterfoil.state (number, state, tries_left, due_at, reason, chain, updated_at)
    SELECT number, 'queued', 3, counterfoil.ledger_time() + interval '1 day', 'accepted', '\\x00', counterfoil.ledger_time()
    FROM o
)
SELECT number FROM o
"""
)
_ROW = text(
    """
INSERT INTO counterfoil.outbox (shard, kind, type, number, operation_id, revision, key, value, headers, created_at)
VALUES (:shard, :kind, :type, :number, :operation, :revision, :key, :value, CAST(:headers AS jsonb), counterfoil.ledger_time())
RETURNING id
"""
)


@dataclass(frozen=True)
class Operation:
    """An accepted operation, and its command's outbox row."""

    number: int
    id: uuid.UUID
    row: int


def accept(connection: Connection, entity: str, value: bytes = b"\x00\x00\x00\x00\x01x", *, type_name: str = TYPE) -> Operation:
    """An operation with its command in the outbox, in the caller's transaction."""
    operation = uuid.uuid4()
    digest = hashlib.sha256(value).digest()
    values = {"id": operation, "type": type_name, "entity": entity, "value": value, "hash": digest}
    number = connection.execute(_OPERATION, values).scalar_one()
    row = put(connection, "command", entity.encode(), None, number=number, operation=operation, type_name=type_name)
    return Operation(number, operation, row)


def put(
    connection: Connection,
    kind: str,
    key: bytes | None,
    value: bytes | None,
    *,
    number: int | None = None,
    operation: uuid.UUID | None = None,
    type_name: str = TYPE,
    headers: str | None = None,
) -> int:
    """One outbox row; answers its id."""
    row = {
        "shard": shard(key or b""),
        "kind": kind,
        "type": type_name,
        "number": number,
        "operation": operation,
        "revision": 1,
        "key": key,
        "value": value,
        "headers": headers,
    }
    return int(connection.execute(_ROW, row).scalar_one())


def report(connection: Connection, operation: Operation, value: bytes | None) -> int:
    """A row for the state topic."""
    key = str(operation.id).encode()
    return put(connection, "state", key, value, number=operation.number, operation=operation.id)


def waiting(ledger: Bed) -> list[int]:
    """The ids that are still in the outbox."""
    return [row["id"] for row in ledger.rows("SELECT id FROM counterfoil.outbox ORDER BY id")]


def published(ledger: Bed) -> list[dict[str, Any]]:
    return ledger.rows("SELECT * FROM counterfoil.published ORDER BY outbox_id, record_offset")


def refused(ledger: Bed) -> list[dict[str, Any]]:
    return ledger.rows("SELECT outbox_id, kind, number, reason, size FROM counterfoil.refused ORDER BY outbox_id")


def headers_of(record: Any) -> dict[str, bytes]:
    return dict(record.headers() or ())


def events_of(records: Sequence[Any]) -> list[int]:
    """The outbox ids that records carry, sorted: twice where a row was sent twice."""
    return sorted(int(headers_of(record)["cf_event"]) for record in records)


def variables(settings: Mapping[str, str]) -> dict[str, str]:
    """Settings as a process's environment."""
    return {f"COUNTERFOIL_{name.upper()}": value for name, value in settings.items()}


@dataclass
class Relays:
    """Relay processes of one test."""

    line: CommandLine
    ledger: Bed
    topics: Topics

    def start(self, *, failpoints: str = "", **settings: str) -> Started:
        """A relay that has taken a session."""
        self.line.settings |= QUICK
        started = self.line.start("relay", "--json", failpoints=failpoints, environment=variables(settings))
        started.printed('"lease_taken"')
        return started

    def empty(self, within: float = 20) -> None:
        """Wait until nothing waits in the outbox."""
        eventually(lambda: not waiting(self.ledger), within=within, what="an empty outbox")
