"""Programs that enqueue in their own transactions and keep their own list of what became of each: the checker's first witness.

`python -m tests.crash.child caller FILE FIRST` runs one in a process of its own, so that it can be killed inside its transaction.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID

import orjson
from sqlalchemy import Connection, Engine, exc

from counterfoil import OperationType, enqueue
from examples.sync_customer import Customer
from examples.upsert_projection import Stock
from tests.crash.declared import keyed, once, stock

#: One transaction's operations: type, kind of misbehaviour.
TURN: Sequence[tuple[OperationType[Any], str]] = (
    (keyed, "plain"),
    (once, "plain"),
    (stock, "plain"),
    (keyed, "busy"),
    (stock, "plain"),
    (keyed, "lost"),
    (once, "plain"),
    (stock, "busy"),
    (keyed, "rejected"),
    (stock, "plain"),
    (once, "lost"),
    (stock, "rejected"),
)
TURNS = 3  #: transactions of one caller that are committed; one more is rolled back


@dataclass
class Wanted:
    """What the callers asked for, by operation id."""

    ok: set[UUID] = field(default_factory=set)
    unknown: set[UUID] = field(default_factory=set)
    failed: set[UUID] = field(default_factory=set)
    types: dict[UUID, str] = field(default_factory=dict)
    fields: dict[UUID, dict[str, Any]] = field(default_factory=dict)  #: what the sink must have, of effects outside


class History:
    """One file of lines, only ever appended to; whole lines, also when its writer is killed."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def note(self, said: str, asked: Sequence[tuple[UUID, str, dict[str, Any]]]) -> None:
        """`said` is begun, ok or failed."""
        line = orjson.dumps({"said": said, "asked": [[str(each[0]), each[1], each[2]] for each in asked]}) + b"\n"
        descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            os.write(descriptor, line)
        finally:
            os.close(descriptor)

    def wanted(self) -> Wanted:
        """What is known now. Begun and neither ok nor rolled back: nobody knows."""
        found = Wanted()
        for line in self.path.read_bytes().splitlines() if self.path.exists() else ():
            read = orjson.loads(line)
            for operation, name, fields in read["asked"]:
                operation_id = UUID(operation)
                found.types[operation_id], found.fields[operation_id] = name, fields
                {"begun": found.unknown, "ok": found.ok, "failed": found.failed}[read["said"]].add(operation_id)
        found.failed -= found.ok
        found.unknown -= found.ok | found.failed
        return found


@dataclass(frozen=True)
class Caller:
    """One program. `secret` goes into every payload: it may come out nowhere but at the sink."""

    engine: Engine
    ledger: str
    history: History
    secret: str
    only: frozenset[str] = frozenset()  #: names of types; empty: all

    def call(self, first: int) -> None:
        """Its transactions, the second of which is rolled back; one whose end is not known is made again."""
        self._committed(first)
        self._transaction(first + 900, take_back=True)
        for turn in range(first + 1, first + TURNS):
            self._committed(turn)

    def _committed(self, turn: int) -> None:
        for _ in range(20):
            try:
                return self._transaction(turn)
            except exc.DBAPIError:
                continue  # the connection was lost: the same once more is the same operations (D89)
        raise AssertionError("the database did not come back")

    def _transaction(self, turn: int, *, take_back: bool = False) -> None:
        asked: list[tuple[UUID, str, dict[str, Any]]] = []
        with self.engine.connect() as connection:
            for operation_type, payload, fields in self._payloads(turn):
                asked.append((enqueue(connection, operation_type, payload), operation_type.name, fields))
            self.history.note("failed" if take_back else "begun", asked)
            if take_back:
                connection.rollback()
                return
            connection.commit()
        self.history.note("ok", asked)

    def _payloads(self, turn: int) -> Iterator[tuple[OperationType[Any], Any, dict[str, Any]]]:
        for place, (operation_type, kind) in enumerate(TURN):
            if self.only and operation_type.name not in self.only:
                continue
            name = f"{self.ledger}/{kind}/{turn}-{place}"
            if operation_type is stock:
                yield operation_type, Stock(name, 1, turn), {"on_hand": turn}
            else:
                email = f"{self.secret}-{turn}@example.com"
                yield operation_type, Customer(name, 1, email), {"email": email}


def enqueue_one(
    connection: Connection, ledger: str, operation_type: OperationType[Any], kind: str, email: str, version: int = 1
) -> UUID:
    """One operation of an effect outside, for scenes that want no other."""
    return enqueue(connection, operation_type, Customer(f"{ledger}/{kind}/0", version, email))
