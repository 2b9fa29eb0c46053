"""The operation types that the bench runs, declared as a user would: a row upserted by each. Importing it opens nothing."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from uuid import UUID

import orjson
from sqlalchemy import Connection, text

from counterfoil import RECEIPT, Attempt, InLedger, InLedgerBatch, Item, Operations, OperationType, Unordered

CONTRACT = Path(__file__).parent / "contracts/shipment.avsc"

#: The user's own table, beside the ledger.
TABLE = """CREATE TABLE shipment
    (shipment_id text PRIMARY KEY, version bigint NOT NULL, grams bigint NOT NULL, postage numeric NOT NULL)"""
_ON_CONFLICT = """ON CONFLICT (shipment_id) DO UPDATE
    SET (version, grams, postage) = (excluded.version, excluded.grams, excluded.postage)
    WHERE shipment.version < excluded.version"""
UPSERT_MANY = text(f"""INSERT INTO shipment (shipment_id, version, grams, postage)
    SELECT * FROM json_to_recordset(CAST(:rows AS json)) AS r(s text, v bigint, g bigint, p numeric) {_ON_CONFLICT}""")  # noqa: S608
UPSERT_ONE = text(f"INSERT INTO shipment VALUES (:shipment_id, :version, :grams, :postage) {_ON_CONFLICT}")  # noqa: S608


@dataclass(frozen=True)
class Shipment:
    shipment_id: str
    version: int
    order_id: UUID
    recipient: str
    address: str
    country: str | None
    grams: int
    postage: Decimal
    packed_at: datetime
    note: str


def shipments(first: int, count: int) -> Iterator[Shipment]:
    """Distinct shipments: the same numbers give the same ones."""
    begin = datetime(2026, 1, 1, tzinfo=UTC)
    for number in range(first, first + count):
        yield Shipment(
            shipment_id=f"shipment-{number:09d}",
            version=1,
            order_id=UUID(int=number),
            recipient=f"Recipient number {number}",
            address=f"{number % 97} Long Street, back building, third floor, {10_000 + number % 80_000} Somewhere by the Water",
            country="DE" if number % 3 else None,
            grams=100 + number % 20_000,
            postage=Decimal(number % 5_000).scaleb(-2),
            packed_at=begin + timedelta(seconds=number % 10_000_000),
            note="Leave it with the neighbours on the ground floor, if nobody opens the door before noon; they know of it.",
        )


def upsert_rows(connection: Connection, rows: Sequence[Shipment]) -> None:
    """One statement for all of them."""
    told = [{"s": row.shipment_id, "v": row.version, "g": row.grams, "p": str(row.postage)} for row in rows]
    connection.execute(UPSERT_MANY, {"rows": orjson.dumps(told).decode()})


def upsert_row(connection: Connection, row: Shipment) -> None:
    """One statement for one."""
    told = {"shipment_id": row.shipment_id, "version": row.version, "grams": row.grams, "postage": row.postage}
    connection.execute(UPSERT_ONE, told)


def upsert_batch(connection: Connection, items: Sequence[Item[Shipment]]) -> None:
    upsert_rows(connection, [item.payload for item in items])


def upsert_single(connection: Connection, payload: Shipment, attempt: Attempt) -> None:
    upsert_row(connection, payload)


show_shipment = OperationType[Shipment](
    name="show_shipment",
    owner="bench",
    payload=Shipment,
    contract=CONTRACT,
    order=Unordered(identity=lambda shipment: (shipment.shipment_id, shipment.version)),
    effect=InLedgerBatch(upsert_batch, size=1000),
    proof=RECEIPT,
)
show_shipment_singly = OperationType[Shipment](
    name="show_shipment_singly",
    owner="bench",
    payload=Shipment,
    contract=CONTRACT,
    order=Unordered(identity=lambda shipment: (shipment.shipment_id, shipment.version)),
    effect=InLedger(upsert_single),
    proof=RECEIPT,
)

OPERATIONS = Operations(show_shipment, show_shipment_singly)
#: For the worker's figures, each type alone: beside another, a type has one of the two threads.
BATCHES = Operations(show_shipment)
SINGLES = Operations(show_shipment_singly)
