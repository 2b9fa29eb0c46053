"""The callers: programs that enqueue inside their own transactions, and keep their own list of what became of each.

Some transactions are rolled back on purpose. The list is what "lost" is counted against, so it never asks the ledger.
"""

import random
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from sqlalchemy import Engine

from counterfoil import OperationType, enqueue
from counterfoil.demo.declared import Customer, Report, export_report, sync_customer

CALLERS = 4
LARGEST_TRANSACTION = 5  # operations
ROLLED_BACK = 0.05  # of the transactions
MONTHS = 12


class Outcome(StrEnum):
    """What a caller knows of its own transaction."""

    COMMITTED = "committed"
    ROLLED_BACK = "rolled_back"
    UNKNOWN = "unknown"  #: the connection was lost at the commit


@dataclass(frozen=True, slots=True)
class Call:
    """One operation that a caller enqueued."""

    operation_id: str
    type: str
    outcome: Outcome


@dataclass
class History:
    """What the callers know; only ever appended to."""

    calls: list[Call] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def append(self, calls: list[Call]) -> None:
        with self._lock:
            self.calls += calls

    def ids(self, outcome: Outcome) -> dict[str, str]:
        """The type of each operation with this outcome, by id."""
        with self._lock:
            return {call.operation_id: call.type for call in self.calls if call.outcome is outcome}


def call_all(engine: Engine, operations: int, seed: int, history: History) -> None:
    """Enqueue that many operations that are committed, from several callers at once; returns when all are done."""
    shares = [operations // CALLERS + (number < operations % CALLERS) for number in range(CALLERS)]
    with ThreadPoolExecutor(CALLERS, thread_name_prefix="caller") as pool:
        done = [pool.submit(_Caller(engine, number, seed, history).work, share) for number, share in enumerate(shares)]
        for one in done:
            one.result()


class _Caller:
    """One program with its own customers and reports."""

    def __init__(self, engine: Engine, number: int, seed: int, history: History) -> None:
        self._engine, self._history = engine, history
        self._drawn = random.Random(f"{seed}/{number}")
        self._wishes = _wishes(number)

    def work(self, operations: int) -> None:
        left = operations
        while left:
            size = min(left, self._drawn.randint(1, LARGEST_TRANSACTION))
            if self._transaction(size, roll_back=self._drawn.random() < ROLLED_BACK):
                left -= size

    def _transaction(self, size: int, *, roll_back: bool) -> bool:
        """Whether it was committed, as far as the caller knows."""
        outcome, enqueued = Outcome.UNKNOWN, []
        with self._engine.connect() as connection, connection.begin() as transaction:
            try:
                for _ in range(size):
                    type_, payload = next(self._wishes)
                    enqueued.append((str(enqueue(connection, type_, payload)), type_.name))
                if roll_back:
                    transaction.rollback()
                    outcome = Outcome.ROLLED_BACK
                else:
                    transaction.commit()
                    outcome = Outcome.COMMITTED
            finally:
                self._history.append([Call(operation_id, name, outcome) for operation_id, name in enqueued])
        return outcome is Outcome.COMMITTED


def _wishes(caller: int) -> Iterator[tuple[OperationType[Any], Any]]:
    """What a caller wants done, without end: a customer's next version and a report, in turn."""
    number = 0
    while True:
        customer, version = f"{caller}-{number % 50}", number // 50 + 1
        yield sync_customer, Customer(customer, version, f"customer-{customer}-{version}@shop.example")
        yield export_report, Report(f"turnover-{caller}-{number // MONTHS}", f"2026-{number % MONTHS + 1:02}")
        number += 1
