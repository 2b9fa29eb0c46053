"""A rehearsal: declared types on a real ledger, with relay and worker played in this process and a clock that is moved by hand.

The ledger is a new database, dropped at the end; no broker is asked. What a worker would do at once happens in `run`; what needs
time (a retry's wait, the end of a dead worker's lease) happens in the `run` after `advance`. There is no reconciler in it: an
operation that must be looked up stays in awaiting_confirmation, or in succeeded, due.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, make_url, text

from counterfoil.core.operation_type import Operations, OperationType
from counterfoil.core.records import Attempt, OperationId, minutes, seconds
from counterfoil.core.standing import REVIEW_WITHIN, Rules
from counterfoil.ledger.due import end_leases, resend_unprobed, send_due
from counterfoil.ledger.engine import in_transaction, ledger_engine
from counterfoil.ledger.migrate import initialise
from counterfoil.ledger.names import ledger_of
from counterfoil.ledger.sessions import close_session, open_session
from counterfoil.reporting import writer_of
from counterfoil.streams.ledger_calls import LedgerCalls
from counterfoil.streams.worker.runnable import runnable_types
from counterfoil.testing.delivery import Delivered, Delivery, by_type
from counterfoil.testing.faults import Fault
from counterfoil.testing.mistakes import SEND_GRACE
from counterfoil.testing.work import Killed, Round, Work

__all__ = ["Rehearsal", "rehearse"]

LEASE = seconds(30)  #: of a worker: after its death nobody takes over before that
RUN_TIME = seconds(60)  #: of an attempt in the ledger's own database
RESEND_AFTER = minutes(1)
LIMIT = 500


class Rehearsal:
    """Made by `rehearse`."""

    connection: Connection  #: hand it to enqueue, status and the others; `run` and `advance` commit it first

    def __init__(self, operations: Operations, engine: Engine, connection: Connection, now: datetime) -> None:
        self.connection = connection
        self.operations = operations
        self._engine = engine
        with engine.begin() as own:
            ledger = ledger_of(own)
        self._writer = writer_of(ledger)
        self._calls = LedgerCalls(engine, 5.0)
        runnable = runnable_types(operations, _rules_of, progress_within=RUN_TIME, batch=LIMIT, lock=None)
        self._works = {one.name: Work(self._calls, self._writer, one) for one in runnable}
        self._places = {one.name: one.places for one in runnable}
        self._rules = {one.name: _rules_of(one) for one in operations}
        self._now = now
        self._set_clock()
        self._delivery = Delivery(engine, ledger.name)

    def run(self, *faults: Fault) -> None:
        """Work until nothing is due. Where faults kill the worker it ends there, and its lease is over 30 s later."""
        self.connection.commit()
        with self._engine.begin() as own:
            round_ = Round(open_session(own, "worker", "rehearsal", LEASE), faults)
        try:
            while self._sweep() + self._delivery.publish() + self._work(round_):
                pass
        except Killed:
            return
        with self._engine.begin() as own:
            close_session(own, round_.session)

    def advance(self, time: timedelta) -> None:
        """Move the ledger's clock forward; calls that were late arrive. Raises ValueError for a negative time."""
        if time < timedelta(0):
            raise ValueError("the clock moves forward only")
        self.connection.commit()
        self._now += time
        self._set_clock()
        for work in self._works.values():
            while work.late:
                with suppress(Exception):  # nobody hears the answer
                    work.late.pop(0)()

    def calls(self, operation_id: OperationId) -> Sequence[Attempt]:
        """How often, and with which keys, the effect of this operation was called, whatever became of the call."""
        return [one for work in self._works.values() for one in work.called if one.operation_id == operation_id]

    def _sweep(self) -> int:
        writer, rules = self._writer, self._rules
        total = 0
        for sweep in (
            lambda c: end_leases(c, writer, rules, limit=LIMIT),
            lambda c: resend_unprobed(c, writer, rules, limit=LIMIT, look_again=RESEND_AFTER),
            lambda c: send_due(c, writer, limit=LIMIT, resend_after=RESEND_AFTER),
        ):
            while moved := in_transaction(self._engine, sweep):
                total += len(moved)
        return total

    def _work(self, round_: Round) -> int:
        """Everything that was delivered, and with `DELIVERED_TWICE` once more; answers how many records there were."""
        waiting = list(self._delivery.waiting)
        for name, records in by_type(waiting).items():
            for batch in _batches(records, self._places.get(name, 1)):
                for _ in range(1 + round_.twice):
                    self._works[name].take(batch, round_)
                self._delivery.acknowledge(round_.session, batch)
        return len(waiting)

    def _set_clock(self) -> None:
        body = f"SELECT timestamptz '{self._now.isoformat()}'"
        with self._engine.begin() as own:
            clock = "CREATE OR REPLACE FUNCTION counterfoil.ledger_time() RETURNS timestamptz LANGUAGE sql VOLATILE AS"
            own.execute(text(f"{clock} $${body}$$"))
            own.execute(text("SELECT counterfoil.make_partitions(7)"))


@contextmanager
def rehearse(operations: Operations, database: str) -> Iterator[Rehearsal]:
    """A rehearsal in a new database on that server, dropped at the end; never in the one named. The login may create databases.

    `database` is a PostgreSQL URL; `counterfoil.parts.postgres()` gives a server of one's own. Raises Refused for a contract that
    does not fit.
    """
    here = make_url(database).set(drivername="postgresql+psycopg")
    name = f"rehearsal_{secrets.token_hex(6)}"
    server = create_engine(here, isolation_level="AUTOCOMMIT", hide_parameters=True)
    try:
        with server.connect() as connection:
            connection.execute(text(f"CREATE DATABASE {name}"))
        try:
            url = here.set(database=name).render_as_string(hide_password=False)
            initialise(url, ledger="rehearsal")
            with _opened(url) as engine, engine.connect() as connection:
                now: datetime = connection.execute(text("SELECT now()")).scalar_one()
                connection.commit()
                yield Rehearsal(operations, engine, connection, now)
                connection.rollback()
        finally:
            with server.connect() as connection:
                connection.execute(text(f"DROP DATABASE {name} WITH (FORCE)"))
    finally:
        server.dispose()


@contextmanager
def _opened(url: str) -> Iterator[Engine]:
    engine = ledger_engine(url)
    try:
        yield engine
    finally:
        engine.dispose()


def _rules_of(of: OperationType[Any]) -> Rules:
    return Rules.of(of, send_grace=SEND_GRACE, in_ledger_time=RUN_TIME, review_within=REVIEW_WITHIN)


def _batches(records: Sequence[Delivered], places: int) -> Iterator[list[Delivered]]:
    """In order, no operation twice in one batch."""
    batch: dict[int, Delivered] = {}
    for one in records:
        if one.candidate.number in batch or len(batch) >= places:
            yield list(batch.values())
            batch = {}
        batch[one.candidate.number] = one
    if batch:
        yield list(batch.values())
