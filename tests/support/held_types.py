"""One type whose batches wait inside the ledger until a test lets go of an advisory lock, beside the ordinary ones."""

from collections.abc import Sequence
from dataclasses import replace

from sqlalchemy import Connection, text

from counterfoil import InLedgerBatch, Item, Operations
from examples.upsert_projection import Stock
from tests.support import worked

MODULE = "tests.support.held_types:OPERATIONS"
LOCK = 4711  #: shared by every batch, exclusive in the test's hands


def _wait(connection: Connection, items: Sequence[Item[Stock]]) -> None:
    connection.execute(text("SELECT pg_advisory_xact_lock_shared(:key)"), {"key": LOCK})


held = replace(worked.in_batches, effect=InLedgerBatch[Stock](_wait, size=1))
OPERATIONS = Operations(held, worked.one_by_one, worked.push, worked.push_async)
