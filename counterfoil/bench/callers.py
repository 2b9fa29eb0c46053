"""Callers of the bench: processes of their own that enqueue one operation a transaction, at an even pace."""

import multiprocessing
import time
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing.synchronize import Barrier
from typing import NamedTuple

from sqlalchemy import create_engine

from counterfoil.bench.declared import shipments, show_shipment
from counterfoil.enqueue import enqueue, prepare

#: Processes import and connect first; all of them begin together, this long after the last one is ready.
BEGIN_AFTER = 0.5  # seconds
READY_WITHIN = 60.0  # seconds


class Pace(NamedTuple):
    """How many callers, and how many operations a second and in all they enqueue together."""

    callers: int
    per_s: float
    operations: int


@contextmanager
def calling(url: str, pace: Pace, first: int) -> Iterator[list[Future[float]]]:
    """Callers at work; a future answers how many seconds behind its pace that caller ended."""
    context = multiprocessing.get_context("spawn")
    ready = context.Barrier(pace.callers)
    share = pace.operations // pace.callers
    with ProcessPoolExecutor(pace.callers, mp_context=context, initializer=_meet_at, initargs=(ready,)) as pool:
        yield [
            pool.submit(_call, url, number / pace.per_s, pace.callers / pace.per_s, first + number * share, share)
            for number in range(pace.callers)
        ]


_ready: Barrier | None = None


def _meet_at(ready: Barrier) -> None:
    global _ready
    _ready = ready


def _call(url: str, offset: float, every: float, first: int, count: int) -> float:
    engine = create_engine(url)  # a caller's own, as SQLAlchemy makes it
    rows = list(shipments(first, count))
    with engine.connect() as connection:  # connected, and the type compiled, before the clock starts
        prepare(connection, show_shipment, rows[:1])
    assert _ready is not None
    _ready.wait(READY_WITHIN)
    begin, behind = time.time() + BEGIN_AFTER + offset, 0.0
    for number, row in enumerate(rows):
        due = begin + number * every
        behind = time.time() - due
        if behind < 0:
            time.sleep(-behind)
        with engine.begin() as connection:
            enqueue(connection, show_shipment, row)
    engine.dispose()
    return max(behind, 0.0)
