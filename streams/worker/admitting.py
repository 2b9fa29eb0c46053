"""Decode, keep raw what cannot be handled, and admit: what a batch of records asks for becomes jobs, and all else is finished.

A record leaves here finished only when the ledger says so: its operation needs nothing more of it, or its bytes are kept. Never
admits more operations than it is handed records, so whoever hands them over holds a slot for each. Blocks its thread.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import Connection

from counterfoil.core.events import LogEvent
from counterfoil.core.identity import idempotency_key, result_key
from counterfoil.core.reasons import Reason
from counterfoil.core.records import Attempt, OperationId
from counterfoil.failpoints import failpoint
from counterfoil.ledger import poison
from counterfoil.ledger.admission import Admission, Admitted, LeaseOver, Why, admit
from counterfoil.ledger.moves import Writer, Written
from counterfoil.ledger.raw_records import keep
from counterfoil.reporting import raw_words
from counterfoil.streams.clock import boottime
from counterfoil.streams.ledger_calls import LedgerCalls
from counterfoil.streams.outcome_lines import tell_written
from counterfoil.streams.worker.decoding import Decoded, Decoding
from counterfoil.streams.worker.in_hand import Finished, InHand
from counterfoil.streams.worker.lease import Lease
from counterfoil.streams.worker.record import Readable, Record, Unreadable, raw, read
from counterfoil.streams.worker.runnable import RunnableType
from counterfoil.streams.worker.wanted import Wanting
from counterfoil.telemetry import Fields, alarm, count, log_each

_Kept = tuple[Readable | Unreadable, int | None, Reason]  # a record, the operation that it may name, and why it is kept
_Begun = tuple[float, int]  # of an attempt: the time before its admission by `boottime`, and the session


class Job(NamedTuple):
    """An admitted attempt: to be answered exactly once, whatever happens to it."""

    record: Record
    also: tuple[Record, ...]  #: further records of the batch that asked for the same: finished with it
    payload: Any
    admitted: Admitted
    session: int  #: that admitted it
    until: float  #: end of its maximum run time by `boottime`

    @property
    def operation_id(self) -> UUID:
        return self.admitted.operation_id

    def attempt(self, timeout: float) -> Attempt:
        """The call, as the effect sees it."""
        _, operation_id, number, revision, generation, _, position = self.admitted
        key = idempotency_key(operation_id, revision, generation)
        return Attempt(OperationId(operation_id), number, key, result_key(operation_id), timeout, position)

    def finished(self) -> list[Finished]:
        """Its records, once its answer is saved."""
        done = Finished(self.record, self.admitted.operation_id, self.admitted.attempt)
        return [done, *(done._replace(record=record) for record in self.also)] if self.also else [done]


class Desk(NamedTuple):
    """What every step at the ledger needs."""

    calls: LedgerCalls
    writer: Writer
    lease: Lease
    in_hand: InHand
    decoding: Decoding
    hold_for: timedelta
    review_within: timedelta


class Admitting:
    """Admission of one type's records."""

    def __init__(self, desk: Desk, type_: RunnableType, topics: Mapping[str, tuple[str, str]]) -> None:
        self._desk = desk
        self._type = type_
        wanted = type_.still_wanted
        self._wanting = None if wanted is None else Wanting(desk.calls, desk.writer, type_.rules, wanted)
        self._roads = {topic: road for topic, (name, road) in topics.items() if name == type_.name}

    def admit(self, records: Sequence[Record]) -> list[Job]:
        """The jobs among these begun records; the others are finished."""
        name, contract, roads = self._type.name, self._type.contract, self._roads
        decoded = self._desk.decoding.decode(name, records, lambda one: read(one, name, roads[one.prefix.topic], contract))
        readable = [one for one in decoded.found if isinstance(one, Readable)]
        unreadable = [one for one in decoded.found if isinstance(one, Unreadable)]
        count("records_received", len(records), operation_type=name)
        if unreadable:
            self._keep_unreadable(unreadable, decoded)
        jobs: list[Job] = []
        failpoint("worker.before_admit")
        while readable:
            readable = self._round(readable, jobs, decoded)
        if jobs:
            failpoint("worker.after_admit")
        return jobs

    def _round(self, readable: Sequence[Readable], jobs: list[Job], decoded: Decoded) -> list[Readable]:
        """Admit the first record of each operation; answers those of the rest that still have to ask for themselves."""
        first: dict[int, Readable] = {}
        rest: list[Readable] = []
        for one in readable:
            if first.setdefault(one.candidate.number, one) is not one:
                rest.append(one)
        if self._wanting is not None:
            self._close_unwanted(self._wanting, first, decoded)
        admission, begun = self._ask(first, decoded)
        also: dict[int, list[Record]] = {}
        still: list[Readable] = []
        copies: list[Readable] = []
        for one in rest:
            number = one.candidate.number
            if number not in first:
                still.append(one)
                continue
            asked = first[number].candidate
            if (asked.revision, asked.value_hash) != (one.candidate.revision, one.candidate.value_hash):
                still.append(one)
            elif number in admission.admitted:
                also.setdefault(number, []).append(one.record)
            else:
                copies.append(one)
        for number, admitted in admission.admitted.items():
            one = first[number]
            before, session = begun[number]
            until = before + self._type.rules.timeout.total_seconds()  # from before the statement: never later than the ledger's
            jobs.append(Job(one.record, tuple(also.get(number, ())), one.payload, admitted, session, until))
        tell_written(admission.moved)
        count("operations_admitted", len(admission.admitted), operation_type=self._type.name)
        self._log_received(first, rest, admission)
        self._leave(first, copies, admission.left)
        return still

    def _close_unwanted(self, wanting: Wanting, first: dict[int, Readable], decoded: Decoded) -> None:
        """Operations that their type says nobody wants: closed before anything is sent, and taken out of the batch."""
        self._desk.decoding.wipe(decoded)  # what the user's function does is no matter of decoding
        closed = wanting(first)
        tell_written([written for _, written in closed])
        gone = {number: first.pop(number) for number, _ in closed}
        self._leave(gone, [], dict.fromkeys(gone, Why.MOVED))

    def _ask(self, first: Mapping[int, Readable], decoded: Decoded) -> tuple[Admission, Mapping[int, _Begun]]:
        """One statement for all. Where the answer to its commit is lost it runs again, and knows its own attempts (D89)."""
        desk, rules = self._desk, self._type.rules
        candidates = [one.candidate for one in first.values()]
        counted: dict[int, Admitted] = {}
        begun: dict[int, _Begun] = {}
        while True:
            session = desk.lease.session

            def unit(connection: Connection, session: int = session) -> Admission:
                before = boottime()
                admission = admit(connection, desk.writer, session, rules, candidates, counted)
                for number, one in admission.admitted.items():
                    if counted.get(number) is not one:
                        counted[number], begun[number] = one, (before, session)
                desk.decoding.finish(connection, decoded)
                if admission.admitted:
                    failpoint("worker.before_admit_commit")
                return admission

            try:
                admission = desk.calls.run(unit)
                decoded.marks.clear()
                return admission, begun
            except LeaseOver:
                desk.lease.renew()

    def _leave(self, first: Mapping[int, Readable], copies: Sequence[Readable], left: Mapping[int, Why]) -> None:
        """Records whose operation was not admitted: finished, those that nobody may run kept raw before that."""
        if not left:
            return
        leaving = [first[number] for number in left] + list(copies)
        unknown = [one for one in leaving if left[one.candidate.number] is Why.UNKNOWN]
        forged = [one for one in leaving if left[one.candidate.number] is Why.DIGEST]
        if unknown or forged:
            held = [(one, None, Reason.UNKNOWN_OPERATION_RECORD) for one in unknown]
            given_up = [(one, one.candidate.number, Reason.DIGEST_MISMATCH) for one in forged]
            self._desk.calls.run(lambda connection: self._keep(connection, held, given_up))
            self._tell_kept(held, given_up)
        for why, total in _counted(left, leaving).items():
            count("records_completed", total, operation_type=self._type.name, reason=why)
        self._desk.in_hand.finish(self._type.name, [Finished(one.record, one.operation_id, 0) for one in leaving])

    def _keep_unreadable(self, unreadable: Sequence[Unreadable], decoded: Decoded) -> None:
        """Bytes that this worker cannot read: kept raw; an operation whose own bytes they are is set aside instead."""

        def unit(connection: Connection) -> tuple[list[_Kept], list[_Kept], list[Written]]:
            self._desk.decoding.finish(connection, decoded)
            return self._sort_unreadable(connection, unreadable)

        failpoint("worker.before_keep")
        held, given_up, aside = self._desk.calls.run(unit)
        decoded.marks.clear()
        self._tell_kept(held, given_up)
        tell_written(aside)
        self._desk.in_hand.finish(self._type.name, [Finished(one.record, None, 0) for one in unreadable])

    def _sort_unreadable(
        self, connection: Connection, unreadable: Sequence[Unreadable]
    ) -> tuple[list[_Kept], list[_Kept], list[Written]]:
        rules = self._type.rules
        suspects = [poison.Suspect(one.claimed.number, one.value_hash) for one in unreadable if one.claimed]
        own = poison.own_bytes(connection, rules, suspects) if suspects else set()
        held: list[_Kept] = []
        given_up: list[_Kept] = []
        aside: dict[int, str] = {}
        for one in unreadable:
            number = one.claimed.number if one.claimed else None
            if one.held:
                held.append((one, number if number in own else None, one.reason))
            elif number in own and one.reason is Reason.UNKNOWN_SCHEMA_ID:
                held.append((one, number, Reason.NO_CAPABLE_WORKER))  # a caller wrote it: its contract is newer than this worker
            elif number is not None and number in own:
                aside[number] = one.reason.value
            else:
                given_up.append((one, number, one.reason))
        moved = poison.set_aside(connection, self._desk.writer, rules, aside) if aside else []
        self._keep(connection, held, given_up)
        return held, given_up, moved

    def _keep(self, connection: Connection, held: Sequence[_Kept], given_up: Sequence[_Kept]) -> None:
        ledger, name = self._desk.writer.ledger, self._type.name
        for kept, are_held, due_in in ((held, True, self._desk.hold_for), (given_up, False, self._desk.review_within)):
            raws = [raw(found, name, number, reason) for found, number, reason in kept]
            if raws:
                keep(connection, ledger, raws, held=are_held, due_in=due_in, words=raw_words)
        failpoint("worker.before_keep_commit")

    def _tell_kept(self, held: Sequence[_Kept], given_up: Sequence[_Kept]) -> None:
        failpoint("worker.after_keep")
        for event, kept in ((LogEvent.HELD, held), (LogEvent.QUARANTINED, given_up)):
            for found, _, reason in kept:
                record = found.record
                topic, partition = record.prefix.topic, record.prefix.partition
                alarm(event, type=self._type.name, topic=topic, partition=partition, offset=record.offset, reason=reason.value)
                count("records_kept_raw", operation_type=self._type.name, reason=reason.value)

    def _log_received(self, first: Mapping[int, Readable], rest: Sequence[Readable], admission: Admission) -> None:
        name, admitted, left = self._type.name, admission.admitted, admission.left

        def lines() -> Iterator[Fields]:
            for number, one in first.items():
                if (attempt := admitted.get(number)) is not None:
                    yield {"operation_id": attempt.operation_id, "type": name, "attempt": attempt.attempt, "redelivered": False}
                else:
                    yield _left_line(name, one, left[number])
            for one in rest:
                yield _left_line(name, one, Why.COPY)

        log_each(LogEvent.RECEIVED, lines())


def _left_line(name: str, one: Readable, why: Why) -> Fields:
    return {"operation_id": one.operation_id, "type": name, "redelivered": why is Why.COMPLETED, "reason": why.value}


def _counted(left: Mapping[int, Why], leaving: Sequence[Readable]) -> dict[str, int]:
    totals: dict[str, int] = {}
    for one in leaving:
        why = left[one.candidate.number].value
        totals[why] = totals.get(why, 0) + 1
    return totals
