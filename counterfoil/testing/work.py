"""A worker of a rehearsal, in this process and on this thread: admit, call the effect, settle, with the worker's own statements.

A sync effect is called as it is and not given up at its time-out; an async one is. Faults are played here and nowhere else.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, NamedTuple, cast

from sqlalchemy import Connection

from counterfoil.core.decisions import Answered
from counterfoil.core.effect import Effect, InLedger, InLedgerBatch
from counterfoil.core.errors import Temporary
from counterfoil.core.identity import idempotency_key, result_key
from counterfoil.core.outcomes import AttemptOutcome
from counterfoil.core.reasons import Reason
from counterfoil.core.records import Attempt, Item, OperationId, Receipt
from counterfoil.ledger.admission import Admitted, admit
from counterfoil.ledger.engine import in_transaction
from counterfoil.ledger.moves import Writer
from counterfoil.ledger.settlement import Result, lock, save
from counterfoil.streams.ledger_calls import LedgerCalls
from counterfoil.streams.worker import answers
from counterfoil.streams.worker.lent import EndedTransaction, Lent
from counterfoil.streams.worker.record import Readable, Record
from counterfoil.streams.worker.runnable import RunnableType
from counterfoil.streams.worker.wanted import Wanting
from counterfoil.testing.delivery import Delivered
from counterfoil.testing.faults import Fault

__all__ = ["Killed", "Round", "Work"]


class Killed(Exception):
    """The worker is dead: what it has not settled nobody has."""


class _Job(NamedTuple):
    admitted: Admitted
    payload: Any
    attempt: Attempt


class Round:
    """What one `run` has played so far."""

    def __init__(self, session: int, faults: Sequence[Fault]) -> None:
        self.session = session
        self.twice = Fault.DELIVERED_TWICE in faults
        self._of_call = [one for one in faults if one.of_call]
        self._attempts: dict[int, int] = {}

    def fault(self, number: int) -> Fault | None:
        """What strikes this attempt of the operation."""
        place = self._attempts.get(number, 0)
        self._attempts[number] = place + 1
        return self._of_call[place] if place < len(self._of_call) else None


class Work:
    """One type's work."""

    def __init__(self, calls: LedgerCalls, writer: Writer, type_: RunnableType) -> None:
        self._calls = calls
        self._writer = writer
        self._type = type_
        self._wanting = None if type_.still_wanted is None else Wanting(calls, writer, type_.rules, type_.still_wanted)
        self.called: list[Attempt] = []  #: every call of an effect, in order
        self.late: list[Callable[[], object]] = []  #: calls that are still on their way to the sink

    def take(self, records: Sequence[Delivered], round_: Round) -> int:
        """Do what these records, no operation twice among them, ask for; answers how many attempts were made. Raises Killed."""
        jobs = self._admitted(records, round_.session)
        if isinstance(self._type.effect, Effect):
            for job in jobs:
                self._outside(self._type.effect, job, round_)
        elif jobs:
            self._in_ledger(jobs, round_)
        return len(jobs)

    def _admitted(self, records: Sequence[Delivered], session: int) -> list[_Job]:
        payloads = {one.candidate.number: self._type.contract.decode(one.value) for one in records}
        candidates = {one.candidate.number: one.candidate for one in records}
        if self._wanting is not None:
            nowhere = cast("Record", None)
            asked = {
                number: Readable(nowhere, [], candidate, cast("Any", None), payloads[number])
                for number, candidate in candidates.items()
            }
            for number, _ in self._wanting(asked):
                del candidates[number]
        rules, left = self._type.rules, list(candidates.values())
        admission = in_transaction(self._calls.engine, lambda c: admit(c, self._writer, session, rules, left))
        return [_Job(one, payloads[number], self._attempt(one)) for number, one in admission.admitted.items()]

    def _attempt(self, admitted: Admitted) -> Attempt:
        _, operation_id, number, revision, generation, _, position = admitted
        effect = self._type.effect
        timeout = effect.timeout if isinstance(effect, Effect) else self._type.rules.timeout
        key = idempotency_key(operation_id, revision, generation)
        return Attempt(OperationId(operation_id), number, key, result_key(operation_id), timeout.total_seconds(), position)

    # -- outside the ledger

    def _outside(self, effect: Effect[Any], job: _Job, round_: Round) -> None:
        number, revision = job.attempt.number, job.admitted.revision
        fault = round_.fault(job.admitted.number)
        if fault is Fault.BEFORE_SEND:
            self._settle(job, answers.raised(effect.errors, number, revision, Temporary()))
            return
        if fault is Fault.LATE_APPLY:
            self.late.append(lambda: self._call(effect, job))
            self._settle(job, answers.timed_out(number, revision))
            return
        try:
            answered = answers.returned(number, revision, self._call(effect, job))
        except Exception as error:  # noqa: BLE001 - whatever a user's function raises is an answer
            answered = answers.raised(effect.errors, number, revision, error)
        if fault is Fault.KILLED_BEFORE_SETTLE:
            raise Killed
        if fault is Fault.ANSWER_LOST:
            answered = answers.timed_out(number, revision)
        self._settle(job, answered)

    def _call(self, effect: Effect[Any], job: _Job) -> object:
        self.called.append(job.attempt)
        if not effect.is_async:
            return effect.call(job.payload, job.attempt)

        async def bounded() -> object:
            call: Any = effect.call(job.payload, job.attempt)
            return await asyncio.wait_for(call, job.attempt.timeout)

        with ThreadPoolExecutor(1) as apart:  # the test may have a loop of its own on this thread
            return apart.submit(asyncio.run, bounded()).result()

    def _settle(self, job: _Job, answered: Answered) -> None:
        def unit(connection: Connection) -> None:
            locked = lock(connection, [job.admitted.number])
            save(connection, self._writer, self._type.rules, locked, [Result(job.admitted.number, answered)])

        in_transaction(self._calls.engine, unit)

    # -- in the ledger's own database

    def _in_ledger(self, jobs: Sequence[_Job], round_: Round) -> None:
        """One transaction of effects and outcomes; where an effect raises, halves of it, down to the one that raised."""
        faults = [round_.fault(job.admitted.number) for job in jobs]
        waiting = [list(jobs)]
        while waiting:
            part = waiting.pop()
            try:
                with self._calls.engine.begin() as connection:
                    self._unit(connection, part)
                    if Fault.KILLED_BEFORE_SETTLE in faults:
                        raise Killed
            except Killed:
                raise
            except Exception as error:  # noqa: BLE001 - whatever a user's function raises is an answer
                if len(part) > 1:
                    waiting += [part[len(part) // 2 :], part[: len(part) // 2]]
                    continue
                [job] = part
                answered = answers.raised(self._type.effect.errors, job.attempt.number, job.admitted.revision, error)
                if isinstance(error, EndedTransaction):
                    ended = Reason.EFFECT_ENDED_TRANSACTION.value
                    answered = replace(answered, outcome=AttemptOutcome.TEMPORARY, reason=ended)
                self._settle(job, answered)

    def _unit(self, connection: Connection, jobs: Sequence[_Job]) -> None:
        effect = self._type.effect
        locked = lock(connection, [job.admitted.number for job in jobs])
        self.called += [job.attempt for job in jobs]
        receipts: list[Receipt | None] = [None] * len(jobs)
        lent = Lent(connection)
        try:
            with lent:
                if isinstance(effect, InLedgerBatch):
                    effect.call(connection, [Item(job.payload, job.attempt) for job in jobs])
                elif isinstance(effect, InLedger):
                    given = [effect.call(connection, job.payload, job.attempt) for job in jobs]
                    receipts = [None if one is None else answers.checked(one) for one in given]
            lent.take_back()
        except Exception:
            if lent.ended():  # its connection is thrown away
                raise EndedTransaction from None
            raise
        results = [
            Result(job.admitted.number, answers.committed(job.attempt.number, job.admitted.revision, receipt))
            for job, receipt in zip(jobs, receipts, strict=True)
        ]
        save(connection, self._writer, self._type.rules, locked, results)
