"""The life of a worker process: what starts in which order, what runs now and then, and how it ends.

At the end nothing new is taken, what is admitted and not sent is given back, what runs has its grace, everything is settled and
committed, and the lease is given up. Whatever goes wrong with the worker itself ends the process with a code that says why.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import mode

from counterfoil.core.events import LogEvent
from counterfoil.ledger.away import is_away
from counterfoil.streams.ledger_calls import DatabaseGone, LedgerCalls
from counterfoil.streams.lifeline import FAULT, UNREACHABLE
from counterfoil.streams.worker.acknowledging import Acknowledgements
from counterfoil.streams.worker.gates import Gates
from counterfoil.streams.worker.in_hand import InHand
from counterfoil.streams.worker.ingest import Ingest
from counterfoil.streams.worker.keeper import Keeper
from counterfoil.streams.worker.lane import Lane
from counterfoil.streams.worker.lease import Lease
from counterfoil.streams.worker.record import Record
from counterfoil.streams.worker.sweeper import Sweeper
from counterfoil.streams.worker.threads import Threads
from counterfoil.streams.worker.watch import BrokerWatch, ProgressWatch
from counterfoil.telemetry import alarm, last_place, log

#: Seconds for the consumer to commit and leave its group at the end.
LEAVE_WITHIN = 8.0


@dataclass
class Ending:
    """Whether and why the process ends. Set from any thread."""

    code: int = 0
    asked: bool = False
    begun: bool = False  #: whoever asked, the end has begun and must not take for ever
    over: bool = False  #: all is settled and committed, the threads are gone: what wants one now came too late, and is no fault

    def ask(self, code: int) -> None:
        """End with this code; the first one counts. SIGTERM to ourselves is the one way by which Faust ends a process."""
        if not self.asked:
            self.asked, self.code = True, code
            os.kill(os.getpid(), signal.SIGTERM)

    def because(self, error: BaseException) -> None:
        """End because of an error that nobody could handle."""
        if self.over:
            return
        away = isinstance(error, DatabaseGone) or is_away(error)
        if not isinstance(error, DatabaseGone):
            alarm(LogEvent.UNEXPECTED, error_class=type(error).__name__, place=last_place(error.__traceback__))
        self.ask(UNREACHABLE if away else FAULT)


@dataclass
class Parts:
    """What a worker is made of."""

    calls: LedgerCalls
    lease: Lease
    keeper: Keeper
    gates: Gates
    in_hand: InHand
    ingest: Ingest
    acknowledgements: Acknowledgements
    lanes: Mapping[str, Lane]
    threads: Threads
    sweeper: Sweeper
    broker: BrokerWatch
    progress: ProgressWatch
    ledger_pools: Sequence[ThreadPoolExecutor]
    ending: Ending
    grace: float  #: seconds for what runs at the end
    lost_threads: int  #: calls past their time-out at which the worker leaves


class Life(mode.Service):
    """Starts after the agents and stops before them."""

    def __init__(self, parts: Parts, channels: Mapping[str, Any]) -> None:
        super().__init__()
        self.parts = parts
        self._channels = channels
        self._aside = ThreadPoolExecutor(2, thread_name_prefix="aside")
        self.clean = False  #: everything ended in time

    async def on_started(self) -> None:
        loop = asyncio.get_running_loop()

        def deliver(type_name: str, records: list[Record]) -> None:
            asyncio.run_coroutine_threadsafe(self._channels[type_name].put(records), loop)

        def fail() -> None:
            self.parts.ending.ask(UNREACHABLE if self.parts.broker.line.lost_for else FAULT)

        def wake() -> None:
            with suppress(RuntimeError):  # the loop is closed: there is nobody to wake
                loop.call_soon_threadsafe(self.parts.gates.wake)

        self.parts.keeper.start(wake, self.parts.ending.because)
        self.parts.ingest.start(deliver, fail)
        log(LogEvent.STARTED, worker=self.parts.lease.session, kind="worker")

    # -- now and then

    async def sweep(self) -> None:
        """One look at what is due, a little apart from the other workers' looks."""
        await asyncio.sleep(random.random() * 0.2)
        await self._beside(self.parts.sweeper.look)

    async def note(self) -> None:
        """Write the notes of commits."""
        parts = self.parts
        await self._beside(lambda: parts.acknowledgements.write(parts.calls, lambda: parts.lease.session))

    async def look(self) -> None:
        """Is the worker of any use?"""
        parts = self.parts
        await asyncio.get_running_loop().run_in_executor(None, parts.broker.look)
        if parts.calls.gone() or parts.broker.gone():
            parts.ending.ask(UNREACHABLE)
        lost = parts.threads.lost + sum(lane.lost for lane in parts.lanes.values())
        if lost >= parts.lost_threads:
            alarm(LogEvent.THREADS_LOST, count=lost)
            parts.ending.ask(FAULT)

    async def look_at_progress(self) -> None:
        """Does every partition get on?"""
        if self.parts.broker.line.lost_for or self.parts.calls.line.lost_for:
            return  # that has its own limit
        if await asyncio.get_running_loop().run_in_executor(None, self.parts.progress.look):
            self.parts.ending.ask(FAULT)

    async def _beside(self, call: Callable[[], object]) -> None:
        """Call the ledger beside the road; a database that is away is met again next time."""
        try:
            await asyncio.get_running_loop().run_in_executor(self._aside, call)
        except asyncio.CancelledError:
            raise
        except Exception as error:  # noqa: BLE001 - no exception leaves a timer: Faust would only log it
            if not is_away(error):
                self.parts.ending.because(error)

    # -- the end

    async def on_stop(self) -> None:
        parts = self.parts
        parts.ending.begun = True
        log(LogEvent.STOPPING, worker=parts.lease.session)
        for lane in parts.lanes.values():
            lane.stop()
        gone = parts.calls.gone() or parts.broker.gone()
        if parts.calls.gone():
            parts.calls.leave()
        in_thread = asyncio.get_running_loop().run_in_executor
        finished = await in_thread(None, parts.in_hand.close, 0.0 if gone else parts.grace)
        parts.keeper.stop()
        parts.calls.leave()
        left = await in_thread(None, parts.ingest.stop, 1.0 if gone else LEAVE_WITHIN)
        if not parts.calls.line.lost_for:
            await self.note()
            await in_thread(self._aside, parts.lease.close)
        parts.ending.over = True
        self._aside.shutdown(wait=False, cancel_futures=True)
        for pool in parts.ledger_pools:
            pool.shutdown(wait=False, cancel_futures=True)
        self.clean = finished and left
