"""Callers of the bench: processes of their own that enqueue one operation a transaction, at an even pace."""

import multiprocessing
import time
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from typing import NamedTuple

from counterfoil.bench.declared import shipments, show_shipment
from counterfoil.enqueue import enqueue
from counterfoil.ledger.engine import ledger_engine

#: A new process imports first; all of them begin together after this.
BEGIN_AFTER = 3.0  # seconds


class Pace(NamedTuple):
    """How many callers, and how many operations a second and in all they enqueue together."""

    callers: int
    per_s: float
    operations: int


@contextmanager
def calling(url: str, pace: Pace, first: int) -> Iterator[list[Future[float]]]:
    """Callers at work; a future answers how many seconds behind its pace that caller ended."""
    context = multiprocessing.get_context("spawn")
    begin = time.time() + BEGIN_AFTER
    share = pace.operations // pace.callers
    with ProcessPoolExecutor(pace.callers, mp_context=context) as pool:
        yield [
            pool.submit(_call, url, begin + number / pace.per_s, pace.callers / pace.per_s, first + number * share, share)
            for number in range(pace.callers)
        ]


def _call(url: str, begin: float, every: float, first: int, count: int) -> float:
    engine = ledger_engine(url, pool_size=1)
    rows = list(shipments(first, count))
    with engine.connect():  # connected before the clock starts
        pass
    behind = 0.0
    for number, row in enumerate(rows):
        due = begin + number * every
        behind = time.time() - due
        if behind < 0:
            time.sleep(-behind)
        with engine.begin() as connection:
            enqueue(connection, show_shipment, row)
    engine.dispose()
    return max(behind, 0.0)
