"""The lane of one type inside a worker: records that wait, and how many of them may go on at once. Runs on the event loop.

Waiting records are bounded by the back-pressure of ingest. Nothing here blocks, and no record is awaited by itself.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Executor as Pool
from functools import partial
from typing import NamedTuple, Protocol

from counterfoil.core.decisions import Answered
from counterfoil.core.effect import Effect
from counterfoil.streams.worker.admitting import Admitting, Desk, Job
from counterfoil.streams.worker.executor import Asked, Executor
from counterfoil.streams.worker.gates import Gates
from counterfoil.streams.worker.in_ledger import InLedgerWork
from counterfoil.streams.worker.record import Record
from counterfoil.streams.worker.runnable import RunnableType
from counterfoil.streams.worker.settling import Settling
from counterfoil.streams.worker.slots import Slots
from counterfoil.streams.worker.threads import Threads

#: Answers that wait to be saved, above which nothing more is admitted.
MOST_UNSAVED = 2_000

Fail = Callable[[BaseException], None]


class Means(NamedTuple):
    """What the lanes of a worker share."""

    pool: Pool  #: the ledger's threads: admissions and answers of effects outside, none of which waits for an effect
    in_ledger: Pool  #: threads that run effects in the ledger
    in_work: int  #: batches of one in-ledger type at a time: while one is in the database, the next is decoded
    slots: Slots  #: with the gates of the sinks
    threads: Threads
    fail: Fail  #: the worker cannot go on


class Lane(Protocol):
    """What a type's agent hands its batches to."""

    def take(self, records: Sequence[Record]) -> None:
        """A batch came."""

    def stop(self) -> None:
        """Nothing more is sent."""

    @property
    def lost(self) -> int:
        """Calls past their time-out that go on, on the loop."""


class InLedgerLane:
    """Batches of at most `places` records, each a whole piece of work for one thread; a slow type leaves one to the others."""

    lost = 0  #: none of its calls has a time-out

    def __init__(self, type_: RunnableType, work: InLedgerWork, means: Means) -> None:
        self._name = type_.name
        self._places = type_.places
        self._work = work
        self._gates: Gates = means.slots.gates
        self._pool = means.in_ledger
        self._most = means.in_work
        self._fail = means.fail
        self._waiting: deque[Record] = deque()
        self._in_work = 0
        self._gates.on_change(self._pump)

    def take(self, records: Sequence[Record]) -> None:
        self._waiting.extend(records)
        self._pump()

    def stop(self) -> None:
        """What waits is dropped where it is begun; what is admitted settles in moments."""

    def _pump(self) -> None:
        while self._waiting and self._in_work < self._most and not self._gates.halted(self._name):
            waiting = self._waiting
            batch = [waiting.popleft() for _ in range(min(self._places, len(waiting)))]
            self._in_work += 1
            asyncio.get_running_loop().run_in_executor(self._pool, self._work, batch).add_done_callback(self._done)

    def _done(self, work: asyncio.Future[None]) -> None:
        self._in_work -= 1
        if not work.cancelled() and (error := work.exception()) is not None:
            self._fail(error)
            return
        self._pump()


class OutsideLane:
    """Admits as many as there are free slots, starts each at once, and gives its slot back when its effect has answered."""

    def __init__(self, desk: Desk, type_: RunnableType, admitting: Admitting, means: Means) -> None:
        assert isinstance(type_.effect, Effect)
        self._desk = desk
        self._type = type_
        self._admitting = admitting
        self._slots = means.slots
        self._pool = means.pool
        self._fail = means.fail
        self._settling = Settling(desk, type_, means.pool, means.fail, self._pump)
        refusal = partial(means.slots.gates.refusal, type_.name)
        self._executor = Executor(
            type_.effect, Asked(desk.lease, refusal), means.threads, self._answered, self._settling.add_late
        )
        self._waiting: deque[Record] = deque()
        self._admits = False
        means.slots.on_free(self._pump)
        means.slots.gates.on_change(self._pump)

    def take(self, records: Sequence[Record]) -> None:
        self._waiting.extend(records)
        self._pump()

    def stop(self) -> None:
        """What is admitted and not sent is given back."""
        self._executor.stopping = True

    @property
    def lost(self) -> int:
        """Async calls past their time-out that go on."""
        return self._executor.lost_tasks

    def _pump(self) -> None:
        free = self._slots.free(self._type, len(self._waiting))
        if self._admits or not self._waiting or not free or len(self._settling) > MOST_UNSAVED:
            return
        batch = [self._waiting.popleft() for _ in range(min(free, len(self._waiting)))]
        self._admits = True
        self._slots.take(self._type, len(batch))
        admitting = asyncio.get_running_loop().run_in_executor(self._pool, self._admit, batch)
        admitting.add_done_callback(lambda done: self._admitted(len(batch), done))

    def _admit(self, batch: Sequence[Record]) -> list[Job]:
        """On a thread of the ledger."""
        begun = self._desk.in_hand.begin(self._type.name, batch)
        try:
            return self._admitting.admit(begun) if begun else []
        except BaseException:
            self._desk.in_hand.abandon(begun)
            raise

    def _admitted(self, held: int, admitting: asyncio.Future[list[Job]]) -> None:
        self._admits = False
        if admitting.cancelled():
            return
        if (error := admitting.exception()) is not None:
            self._fail(error)
            return
        jobs = admitting.result()
        self._slots.gates.admitted(self._type.name, [job.admitted.number for job in jobs])
        for job in jobs:
            self._executor.start(job)
        if held > len(jobs):
            self._slots.give_back(self._type, held - len(jobs))
        self._pump()

    def _answered(self, job: Job, answered: Answered) -> None:
        self._settling.add(job, self._slots.gates.answered(self._type.name, job.admitted.number, answered))
        self._slots.release(self._type, 1)
