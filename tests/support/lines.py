"""Entities with an order: types for them, operations of one entity, and where each stands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

from sqlalchemy import text

from counterfoil import LatestWins, OperationType, Strict, enqueue_many
from counterfoil.core.order import Ordering
from counterfoil.core.standing import Rules
from counterfoil.ledger import due
from counterfoil.ledger.admission import Candidate
from counterfoil.ledger.engine import in_transaction
from examples.upsert_projection import Stock
from examples.upsert_projection import upsert_projection as latest_projection
from tests.support.ledgers import Bed
from tests.support.stock import Hand, rules_of

__all__ = ["LATEST", "STRICT", "Line", "latest_projection", "strict_projection"]

strict_projection: OperationType[Stock] = replace(
    latest_projection, order=Strict[Stock](identity=lambda s: (s.sku, s.version), entity=lambda s: s.sku)
)
assert isinstance(latest_projection.order, LatestWins)
#: Outside the ledger, probed, at a sink that keeps our key for an hour; the entity of each has its order.
STRICT: Rules = replace(
    rules_of(strict_projection),
    in_ledger=False,
    receipt_confirms=False,
    has_probe=True,
    keyed=True,
    horizon=timedelta(hours=1),
    request_life=timedelta(seconds=30),
    read_lag=timedelta(seconds=5),
    timeout=timedelta(seconds=20),
)
LATEST: Rules = replace(STRICT, ordering=Ordering.LATEST_WINS)


class Line:
    """The operations of an ordered type in one ledger, and a worker's calls on them by hand."""

    def __init__(self, bed: Bed, rules: Rules = STRICT, lease: timedelta = timedelta(days=9)) -> None:
        self.bed = bed
        self.rules = rules
        self.type = strict_projection if rules.ordering is Ordering.STRICT else latest_projection
        self.hand = Hand(bed.engine, rules, lease=lease)

    def enqueue(self, *places: tuple[str, int]) -> list[int]:
        """Operations of (entity, version), in this order, in one transaction; answers their numbers."""
        with self.bed.engine.begin() as connection:
            ids = enqueue_many(connection, self.type, [Stock(sku, version, version) for sku, version in places])
            found = {
                row.operation_id: row.number
                for row in connection.execute(text("SELECT operation_id, number FROM counterfoil.operation"))
            }
        return [found[each] for each in ids]

    def record(self, number: int) -> Candidate:
        """Its command record."""
        return next(each for each in self.hand.candidates() if each.number == number)

    def admit(self, *numbers: int) -> Any:
        """Ask for these by their records."""
        return self.hand.admit(*(self.record(number) for number in numbers))

    def states(self, numbers: Sequence[int]) -> list[str]:
        rows = {row["number"]: row["state"] for row in self.bed.rows("SELECT number, state FROM counterfoil.state")}
        return [rows[number] for number in numbers]

    def sent(self) -> list[int]:
        """The numbers of the command records that wait in the outbox; they are taken out of it."""
        query = "WITH gone AS (DELETE FROM counterfoil.outbox WHERE kind IN ('command', 'retry') RETURNING id, number)"
        with self.bed.engine.begin() as connection:
            return list(connection.execute(text(f"{query} SELECT number FROM gone ORDER BY id")).scalars())

    def sweep(self) -> int:
        """Send what is due."""
        pace: dict[str, Any] = {"limit": 500, "resend_after": timedelta(minutes=1)}
        return len(in_transaction(self.bed.engine, lambda c: due.send_due(c, self.hand.writer, **pace)))

    def head(self, entity: str = "a") -> int | None:
        """The entity row's mark: the head, or the newest version admitted."""
        query = """SELECT COALESCE(e.head, e.newest) FROM counterfoil.entity e WHERE e.id =
            (SELECT s.entity_id FROM counterfoil.state s JOIN counterfoil.operation o USING (number)
            WHERE o.entity = :entity LIMIT 1)"""
        found: int | None = self.bed.one(query, entity=entity)
        return found
