"""Effects in the ledger's own database: each batch is one transaction of lock, effects, outcomes; a failing batch is halved.

Returning means applied when the transaction commits, raising means that nothing is left of it: there is no uncertain effect here.
No savepoints (they cost five times as much). Blocks its thread.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import psycopg
from sqlalchemy import Connection, exc

from counterfoil.core.decisions import Answered
from counterfoil.core.effect import InLedger, InLedgerBatch
from counterfoil.core.events import LogEvent
from counterfoil.core.outcomes import AttemptOutcome
from counterfoil.core.reasons import Reason
from counterfoil.core.records import Item, Receipt
from counterfoil.failpoints import FailpointHit, failpoint
from counterfoil.ledger.away import is_away, sqlstate
from counterfoil.ledger.engine import AGAIN
from counterfoil.ledger.settlement import Locked, Result, holds, lock, save
from counterfoil.streams.clock import boottime
from counterfoil.streams.outcome_lines import Became, tell
from counterfoil.streams.worker.admitting import Admitting, Desk, Job
from counterfoil.streams.worker.answers import checked, committed, raised
from counterfoil.streams.worker.lent import EndedTransaction, Lent
from counterfoil.streams.worker.record import Record
from counterfoil.streams.worker.runnable import RunnableType
from counterfoil.telemetry import alarm

#: How often a batch is repeated whose line to the database breaks while its effects run, before they are taken for the cause.
BREAKS = 3


class EffectFailed(Exception):
    """An effect raised; `place` is its place in the batch, None where it is not known which one it was."""

    def __init__(self, place: int | None, error: BaseException) -> None:
        super().__init__(type(error).__name__)
        self.place = place
        self.error = error


class InLedgerWork:
    """One type's work on a thread of the ledger: from records to finished records."""

    def __init__(self, desk: Desk, type_: RunnableType, admitting: Admitting) -> None:
        if not isinstance(type_.effect, (InLedger, InLedgerBatch)):
            raise TypeError("an effect outside is executed elsewhere")
        self._desk = desk
        self._type = type_
        self._effect: InLedger[Any] | InLedgerBatch[Any] = type_.effect
        self._admitting = admitting

    def __call__(self, records: Sequence[Record]) -> None:
        """Admit and settle at most `places` records."""
        name, in_hand = self._type.name, self._desk.in_hand
        begun = in_hand.begin(name, records)
        if not begun:
            return
        try:
            jobs = self._admitting.admit(begun)
            if jobs:
                self._settle(jobs)
                failpoint("worker.after_settle")
                in_hand.finish(name, [done for job in jobs for done in job.finished()])
        except BaseException:
            in_hand.abandon(begun)
            raise

    def _settle(self, jobs: Sequence[Job]) -> None:
        """Settle a batch, by halves where it fails: what is left alone is told by its own exception."""
        waiting = [list(jobs)]
        while waiting:
            batch = waiting.pop()
            breaks: list[BaseException] = []
            try:
                became = self._desk.calls.run(
                    lambda connection, batch=batch, breaks=breaks: self._unit(connection, batch, breaks)  # type: ignore[misc]
                )
            except EffectFailed as failed:
                if len(batch) > 1:
                    waiting.extend(_split(batch, failed.place))
                    continue
                became = self._fail(batch[0], failed.error)
            except exc.SQLAlchemyError as error:  # at the commit: a deferred constraint, or a deadlock that comes again and again
                if is_away(error):
                    raise
                if len(batch) > 1:
                    waiting.extend(_split(batch, None))
                    continue
                became = self._fail(batch[0], error)
            tell(self._type.name, became)

    def _unit(self, connection: Connection, batch: Sequence[Job], breaks: list[BaseException]) -> list[Became]:
        locked = lock(connection, [job.admitted.number for job in batch])
        held = [
            (place, job)
            for place, job in enumerate(batch)
            if holds(locked.standings.get(job.admitted.number), job.session, job.admitted.attempt)
        ]
        if not held:
            return []
        failpoint("worker.before_effect")
        lent = Lent(connection)
        try:
            receipts = self._apply(connection, lent, held)
            failpoint("worker.after_effect")
            results = [
                Result(job.admitted.number, committed(job.admitted.attempt, job.admitted.revision, receipt))
                for (_, job), receipt in zip(held, receipts, strict=True)
            ]
            became = self._save(connection, locked, [job for _, job in held], results)
        except (EffectFailed, exc.SQLAlchemyError) as error:
            raise _of_effect(lent, error, breaks) from None
        failpoint("worker.before_settle_commit")
        return became

    def _save(self, connection: Connection, locked: Locked, jobs: Sequence[Job], results: Sequence[Result]) -> list[Became]:
        became = save(connection, self._desk.writer, self._type.rules, locked, results)
        return [
            Became(job.operation_id, job.admitted.attempt, became[job.admitted.number], result.answered.raised)
            for job, result in zip(jobs, results, strict=True)
            if job.admitted.number in became
        ]

    def _apply(self, connection: Connection, lent: Lent, held: Sequence[tuple[int, Job]]) -> list[Receipt | None]:
        """The effects, on a transaction that they may write in and not end."""
        with lent:
            if isinstance(self._effect, InLedgerBatch):
                receipts = self._apply_batch(connection, lent, held, self._effect)
            else:
                receipts = [self._apply_one(connection, lent, place, job, self._effect) for place, job in held]
        try:
            lent.take_back()
        except EndedTransaction as error:
            raise EffectFailed(None, error) from None
        return receipts

    def _apply_batch(
        self, connection: Connection, lent: Lent, held: Sequence[tuple[int, Job]], effect: InLedgerBatch[Any]
    ) -> list[Receipt | None]:
        now = boottime()
        items = [Item(job.payload, job.attempt(max(job.until - now, 0.0))) for _, job in held]
        try:
            effect.call(connection, items)
            lent.look()
        except FailpointHit:
            raise
        except BaseException as error:  # noqa: BLE001 - whatever a user's function raises, SystemExit too
            raise EffectFailed(None, error) from None
        return [None] * len(held)

    def _apply_one(self, connection: Connection, lent: Lent, place: int, job: Job, effect: InLedger[Any]) -> Receipt | None:
        try:
            receipt = effect.call(connection, job.payload, job.attempt(max(job.until - boottime(), 0.0)))
            lent.look()
            return None if receipt is None else checked(receipt)
        except FailpointHit:
            raise
        except BaseException as error:  # noqa: BLE001 - whatever a user's function raises, SystemExit too
            raise EffectFailed(place, error) from None

    def _fail(self, job: Job, error: BaseException) -> list[Became]:
        """Save what the one operation's own exception means; its effect was rolled back."""
        answered: Answered = raised(self._effect.errors, job.admitted.attempt, job.admitted.revision, error)
        if isinstance(error, EndedTransaction):
            answered = replace(answered, outcome=AttemptOutcome.TEMPORARY, reason=Reason.EFFECT_ENDED_TRANSACTION.value)
            alarm(LogEvent.UNEXPECTED, type=self._type.name, error_class=type(error).__name__, reason=answered.reason)

        def unit(connection: Connection) -> list[Became]:
            locked = lock(connection, [job.admitted.number])
            if not holds(locked.standings.get(job.admitted.number), job.session, job.admitted.attempt):
                return []
            return self._save(connection, locked, [job], [Result(job.admitted.number, answered, random.random())])

        return self._desk.calls.run(unit)


def _of_effect(lent: Lent, error: EffectFailed | exc.SQLAlchemyError, breaks: list[BaseException]) -> BaseException:
    """What an exception is that came after the effects began: the ledger's only where its own line broke, else the effect's.

    An effect may use another database, or break the line itself: the unit is repeated for a broken line, and not for ever.
    """
    failed = error if isinstance(error, EffectFailed) else EffectFailed(None, error)
    cause = failed.error
    if lent.ended():
        return EffectFailed(failed.place, EndedTransaction().with_traceback(cause.__traceback__))
    if lent.broken:
        lent.throw_away()  # or the rollback would fail in place of what is raised here
        breaks.append(cause)
        return _away() if len(breaks) < BREAKS else failed
    if isinstance(cause, exc.DBAPIError) and sqlstate(cause) in AGAIN:
        return cause  # the whole unit is run again
    return failed


def _away() -> exc.SQLAlchemyError:
    """What the ledger's calls take for a database that is away."""
    return exc.OperationalError(None, None, psycopg.OperationalError(), hide_parameters=True)


def _split(batch: list[Job], place: int | None) -> list[list[Job]]:
    """The parts to try again: around the one that raised, where that is known, else halves."""
    if place is not None:
        return [part for part in (batch[place + 1 :], [batch[place]], batch[:place]) if part]
    middle = len(batch) // 2
    return [batch[middle:], batch[:middle]]
