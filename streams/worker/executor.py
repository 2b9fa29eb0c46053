"""Calls effects outside the ledger, each with its time-out, and sorts what comes back; async ones on the loop, others on threads.

The last check before the first byte is here: the session's lease by a clock that counts suspension, the attempt's own time,
whether the type's gates are shut, and whether the worker stops. Every job is answered exactly once; what comes after its time-out
is handed on as late. No exception of an effect leaves this module.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

from counterfoil.core.decisions import Answered
from counterfoil.core.effect import Effect
from counterfoil.core.outcomes import AttemptOutcome
from counterfoil.core.reasons import Reason
from counterfoil.failpoints import failpoint
from counterfoil.streams.clock import boottime
from counterfoil.streams.worker import answers
from counterfoil.streams.worker.admitting import Job
from counterfoil.streams.worker.lease import Lease
from counterfoil.streams.worker.threads import Threads

#: Seconds that a call may be over its time-out before it is given up: the client's own time-out, the same number, should win.
OVER = 0.2

Answer = Callable[[Job, Answered], None]


class Asked(NamedTuple):
    """Who is asked right before a call."""

    lease: Lease
    refusal: Callable[[], Reason | None]  #: why the type's gates let nothing through


class Executor:
    """The effects of one type, on one event loop."""

    def __init__(self, effect: Effect[Any], asked: Asked, threads: Threads, answer: Answer, late: Answer) -> None:
        self._effect = effect
        self._timeout = effect.timeout.total_seconds()
        self._asked = asked
        self._threads = threads
        self._answer = answer  # called once for each job, on the loop
        self._late = late  # called, on the loop, for what comes after the answer
        self._running: set[asyncio.Task[None]] = set()
        self.stopping = False  #: what is not yet sent is given back
        self.lost_tasks = 0  #: async calls past their time-out that have not ended

    def start(self, job: Job) -> None:
        """Begin at once."""
        task = asyncio.get_running_loop().create_task(self._run(job))
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def _run(self, job: Job) -> None:
        if self._effect.is_async:
            answered = await self._on_loop(job)
        else:
            answered = await self._on_thread(job)
        self._answer(job, answered)

    def _refusal(self, job: Job) -> Reason | None:
        """Why nothing may be sent any more; None: the first byte may leave within the send grace."""
        if self.stopping:
            return Reason.NOT_SENT_SHUTDOWN
        if not self._asked.lease.holds(job.session):
            return Reason.NOT_SENT_LEASE
        if job.until - boottime() < self._timeout:
            return Reason.NOT_SENT_TIME
        return self._asked.refusal()

    def _sorted(self, job: Job, error: BaseException) -> Answered:
        return answers.raised(self._effect.errors, job.admitted.attempt, job.admitted.revision, error)

    # -- async

    async def _on_loop(self, job: Job) -> Answered:
        number, revision = job.admitted.attempt, job.admitted.revision
        if (refusal := self._refusal(job)) is not None:
            return answers.not_sent(number, revision, refusal)
        failpoint("worker.before_effect")
        call = asyncio.get_running_loop().create_task(self._call(job))
        done, _ = await asyncio.wait({call}, timeout=self._timeout + OVER)
        failpoint("worker.after_effect")
        if not done:
            call.cancel()
            self.lost_tasks += 1
            call.add_done_callback(lambda ended: self._ended_late(job, ended))
            return answers.timed_out(number, revision)
        if call.cancelled():
            return self._sorted(job, asyncio.CancelledError())
        return call.result()

    async def _call(self, job: Job) -> Answered:
        """The effect's answer, sorted; raises CancelledError only."""
        try:
            answer = self._effect.call(job.payload, job.attempt(self._timeout))
            if inspect.isawaitable(answer):
                answer = await answer
        except asyncio.CancelledError:
            raise
        except BaseException as error:  # noqa: BLE001 - SystemExit of a user's code would end the loop
            return self._sorted(job, error)
        return answers.returned(job.admitted.attempt, job.admitted.revision, answer)

    def _ended_late(self, job: Job, ended: asyncio.Future[Answered]) -> None:
        self.lost_tasks -= 1
        if not ended.cancelled() and ended.exception() is None:
            self._tell_late(job, ended.result())

    # -- on a thread

    async def _on_thread(self, job: Job) -> Answered:
        loop = asyncio.get_running_loop()
        call = self._threads.submit(lambda: self._call_there(job, loop))
        waiting = asyncio.wrap_future(call.future)
        done, _ = await asyncio.wait({waiting}, timeout=self._timeout + OVER)
        if done:
            return waiting.result()
        if not self._threads.lose(call):
            return answers.not_sent(job.admitted.attempt, job.admitted.revision, Reason.NOT_SENT_TIME)
        waiting.add_done_callback(lambda ended: self._returned_late(job, ended))
        return answers.timed_out(job.admitted.attempt, job.admitted.revision)

    def _call_there(self, job: Job, loop: asyncio.AbstractEventLoop) -> Answered:
        number, revision = job.admitted.attempt, job.admitted.revision
        if (refusal := self._refusal(job)) is not None:
            return answers.not_sent(number, revision, refusal)
        failpoint("worker.before_effect")
        try:
            answer = self._effect.call(job.payload, job.attempt(self._timeout))
            if inspect.isawaitable(answer):  # a plain function that gives something to await
                answer = asyncio.run_coroutine_threadsafe(_awaited(answer), loop).result(self._timeout)
        except BaseException as error:  # noqa: BLE001 - whatever a user's function raises, SystemExit too
            return self._sorted(job, error)
        finally:
            failpoint("worker.after_effect")
        return answers.returned(number, revision, answer)

    def _returned_late(self, job: Job, ended: asyncio.Future[Answered]) -> None:
        if not ended.cancelled() and ended.exception() is None:
            self._tell_late(job, ended.result())

    def _tell_late(self, job: Job, answered: Answered) -> None:
        """A late receipt or certain answer still counts where core says so; one that proves nothing adds nothing."""
        if answered.outcome is not AttemptOutcome.UNCERTAIN:
            self._late(job, answered)


async def _awaited(answer: Any) -> Any:
    return await answer
