"""Rows of a projection are written in the ledger's own database: row and outcome are one commit."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Connection, text

from counterfoil import RECEIPT, InLedgerBatch, Item, LatestWins, OperationType


@dataclass(frozen=True)
class Stock:
    sku: str
    version: int
    on_hand: int


UPSERT = text("""INSERT INTO stock_view (sku, version, on_hand) VALUES (:sku, :version, :on_hand)
    ON CONFLICT (sku) DO UPDATE SET (version, on_hand) = (excluded.version, excluded.on_hand)
    WHERE stock_view.version < excluded.version""")


def upsert(connection: Connection, items: Sequence[Item[Stock]]) -> None:
    connection.execute(
        UPSERT, [{"sku": i.payload.sku, "version": i.payload.version, "on_hand": i.payload.on_hand} for i in items]
    )


upsert_projection = OperationType[Stock](
    name="upsert_projection",
    owner="team-stock",
    payload=Stock,
    contract=Path(__file__).parent / "contracts/upsert_projection.avsc",
    order=LatestWins(entity=lambda s: s.sku, version=lambda s: s.version),
    effect=InLedgerBatch(upsert, size=1000),
    proof=RECEIPT,  # the row and the outcome are one commit
)
