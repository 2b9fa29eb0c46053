"""An operation type whose effect is a row in the ledger's own database, and what the tests of the ledger do with it."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

from sqlalchemy import Connection, Engine, text

from counterfoil import OperationType, Unordered
from counterfoil.core.decisions import Answered, Kept, Move
from counterfoil.core.outcomes import AttemptOutcome
from counterfoil.core.records import Receipt
from counterfoil.core.standing import REVIEW_WITHIN, Rules
from counterfoil.ledger import admission, sessions, settlement
from counterfoil.ledger.admission import Admission, Candidate
from counterfoil.ledger.engine import in_transaction
from counterfoil.ledger.moves import Writer
from counterfoil.ledger.names import ledger_of
from counterfoil.reporting import writer_of
from examples.upsert_projection import Stock
from examples.upsert_projection import upsert_projection as by_version

upsert_projection: OperationType[Stock] = replace(by_version, order=Unordered[Stock](lambda s: (s.sku, s.version)))
#: The projection that the effect writes.
STOCK_VIEW = "CREATE TABLE IF NOT EXISTS stock_view (sku text PRIMARY KEY, version bigint NOT NULL, on_hand bigint NOT NULL)"


def rules_of(operation_type: OperationType[Any] = upsert_projection) -> Rules:
    """The type's rules with a send grace of 5 s and a run time of 60 s."""
    times = {"send_grace": timedelta(seconds=5), "in_ledger_time": timedelta(seconds=60), "review_within": REVIEW_WITHIN}
    return Rules.of(operation_type, **times)


class Hand:
    """A worker's ledger calls, one after the other, by hand."""

    def __init__(self, engine: Engine, rules: Rules | None = None, lease: timedelta = timedelta(seconds=30)) -> None:
        self.engine = engine
        self.rules = rules or rules_of()
        self.lease = lease
        with engine.begin() as connection:
            self.writer: Writer = writer_of(ledger_of(connection))
            self.session = sessions.open_session(connection, "worker", "hand", lease)

    def candidates(self) -> list[Candidate]:
        """A command record of every operation, at offsets that are their numbers."""
        query = "SELECT number, revision, value_hash FROM counterfoil.payload ORDER BY number"
        with self.engine.connect() as connection:
            return [
                Candidate(row.number, row.revision, bytes(row.value_hash), "commands", 0, row.number)
                for row in connection.execute(text(query))
            ]

    def admit(self, *candidates: Candidate) -> Admission:
        """Admits these, or everything."""
        asked = candidates or tuple(self.candidates())
        return in_transaction(self.engine, lambda c: admission.admit(c, self.writer, self.session, self.rules, asked))

    def settle(self, number: int, answered: Answered) -> Move | Kept:
        """Saves one answer."""

        def unit(connection: Connection) -> Move | Kept:
            locked = settlement.lock(connection, [number])
            result = settlement.Result(number, answered)
            return settlement.save(connection, self.writer, self.rules, locked, [result])[number]

        return in_transaction(self.engine, unit)


def done(attempt: int, remote_id: str | None = "r-1") -> Answered:
    """An answer with a receipt."""
    return Answered(attempt, AttemptOutcome.DONE, "receipt", Receipt(remote_id))


def failed(attempt: int, outcome: AttemptOutcome, reason: str = "temporary_failure") -> Answered:
    """An answer without one."""
    return Answered(attempt, outcome, reason)
