"""Saves the answers of effects outside, in batches as they come: lock, ask core, write, and only then are their records finished.

One batch of a type is in the ledger at a time, and what comes meanwhile is the next. An answer that cannot be saved as it is, is
saved as uncertain: an attempt is never forgotten.
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Executor as Pool
from dataclasses import replace
from typing import NamedTuple

from sqlalchemy import Connection

from counterfoil.core.decisions import Answered
from counterfoil.core.outcomes import AttemptOutcome
from counterfoil.core.reasons import Reason
from counterfoil.failpoints import FailpointHit, failpoint
from counterfoil.ledger.away import is_away
from counterfoil.ledger.settlement import Result, Saved, already, lock, save
from counterfoil.streams.ledger_calls import DatabaseGone
from counterfoil.streams.outcome_lines import Became, tell
from counterfoil.streams.worker.admitting import Desk, Job
from counterfoil.streams.worker.runnable import RunnableType

#: Answers of one transaction.
MOST = 500


Fail = Callable[[BaseException], None]


class _Answer(NamedTuple):
    job: Job
    answered: Answered
    late: bool  # its records were finished with the first answer


class Settling:
    """The answers of one type. Added to on the event loop; saved on the ledger's threads."""

    def __init__(self, desk: Desk, type_: RunnableType, pool: Pool, fail: Fail, saved: Callable[[], None]) -> None:
        self._desk = desk
        self._type = type_
        self._pool = pool
        self._fail = fail
        self._on_saved = saved
        self._waiting: deque[_Answer] = deque()
        self._busy = False

    def __len__(self) -> int:
        """Answers that are not saved."""
        return len(self._waiting)

    def add(self, job: Job, answered: Answered) -> None:
        """The answer of an attempt."""
        self._waiting.append(_Answer(job, answered, late=False))
        self._pump()

    def add_late(self, job: Job, answered: Answered) -> None:
        """What came after its time-out."""
        self._waiting.append(_Answer(job, answered, late=True))
        self._pump()

    def _pump(self) -> None:
        if self._busy or not self._waiting:
            return
        self._busy = True
        saving = asyncio.get_running_loop().run_in_executor(self._pool, self._settle, self._next())
        saving.add_done_callback(self._saved)

    def _next(self) -> list[_Answer]:
        """A batch in which no operation comes twice."""
        batch: dict[int, _Answer] = {}
        later: list[_Answer] = []
        while self._waiting and len(batch) < MOST:
            one = self._waiting.popleft()
            if batch.setdefault(one.job.admitted.number, one) is not one:
                later.append(one)
        self._waiting.extendleft(reversed(later))
        return list(batch.values())

    def _saved(self, saving: asyncio.Future[None]) -> None:
        self._busy = False
        if saving.cancelled():
            return
        if (error := saving.exception()) is not None:
            self._fail(error)
            return
        self._pump()
        self._on_saved()

    # -- on a thread of the ledger

    def _settle(self, batch: Sequence[_Answer]) -> None:
        try:
            self._settle_all(batch)
        except BaseException:
            self._desk.in_hand.abandon([done.record for one in batch for done in one.job.finished()])
            raise

    def _settle_all(self, batch: Sequence[_Answer]) -> None:
        waiting = [list(batch)]
        while waiting:
            part = waiting.pop()
            runs: list[Saved] = []
            try:
                became = self._desk.calls.run(lambda connection, part=part, runs=runs: self._unit(connection, part, runs))  # type: ignore[misc]
            except (DatabaseGone, FailpointHit):
                raise
            except Exception as error:
                if is_away(error):
                    raise
                if len(part) > 1:
                    middle = len(part) // 2
                    waiting += [part[middle:], part[:middle]]
                    continue
                if part[0].answered.outcome is AttemptOutcome.UNCERTAIN:
                    raise
                doubt = replace(
                    part[0].answered, outcome=AttemptOutcome.UNCERTAIN, reason=Reason.WRONG_ANSWER.value, receipt=None
                )
                waiting.append([part[0]._replace(answered=doubt)])
                continue
            failpoint("worker.after_settle")
            tell(self._type.name, became)
            self._desk.in_hand.finish(self._type.name, [done for one in part if not one.late for done in one.job.finished()])

    def _unit(self, connection: Connection, part: Sequence[_Answer], runs: list[Saved]) -> list[Became]:
        locked = lock(connection, [one.job.admitted.number for one in part])
        became = already(locked, runs)
        results = [
            Result(one.job.admitted.number, one.answered, random.random())
            for one in part
            if one.job.admitted.number not in became
        ]
        saved = save(connection, self._desk.writer, self._type.rules, locked, results)
        runs.append(Saved(locked, saved))
        became |= saved
        failpoint("worker.before_settle_commit")
        return [
            Became(one.job.operation_id, one.answered.attempt, became[one.job.admitted.number], one.answered.raised)
            for one in part
            if one.job.admitted.number in became
        ]
