"""A type's `still_wanted` is asked before each send, with the ledger's own bytes and a connection that changes nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from sqlalchemy import Connection, text

from counterfoil import Attempt, Effect, Errors, NotAtAll, Receipt, Sink, Wanted, enqueue_many, seconds
from counterfoil.core.operation_type import OperationType
from counterfoil.parts import FaultProxy, fault_proxy
from examples.upsert_projection import Stock
from tests.support.lanes import cut_line
from tests.support.ledgers import Bed
from tests.support.stock import STOCK_VIEW, upsert_projection

ONCE = Sink("once", NotAtAll(), request_life=seconds(1), read_lag=seconds(0))


@pytest.fixture
def proxy(ledger: Bed) -> Iterator[FaultProxy]:
    with fault_proxy(ledger.server.port) as proxy:
        yield proxy


@pytest.fixture
def sent() -> list[str]:
    """What the effect was called for."""
    return []


def still_wanted(stock: Stock, connection: Connection) -> Wanted:
    """Asks the user's own table, and misbehaves by the name of the goods."""
    if stock.sku == "raises":
        raise ValueError(stock.sku)
    if stock.sku == "breaks":
        connection.execute(text("SELECT 1 / 0"))
    if stock.sku == "writes":
        connection.execute(text("DELETE FROM wish"))
    if stock.sku == "ends":
        connection.rollback()
    answer = connection.execute(text("SELECT answer FROM wish WHERE sku = :sku"), {"sku": stock.sku}).scalar()
    return Wanted(answer) if answer else Wanted.YES


def outside(sent: list[str]) -> OperationType[Stock]:
    def push(stock: Stock, attempt: Attempt) -> Receipt:
        sent.append(stock.sku)
        return Receipt(stock.sku)

    effect = Effect[Stock](push, ONCE, timeout=seconds(5), errors=Errors())
    return replace(upsert_projection, name="outside", effect=effect, proof=None, still_wanted=still_wanted)


def fill(ledger: Bed, of: OperationType[Stock], *names: str) -> None:
    with ledger.engine.begin() as connection:
        connection.execute(text("CREATE TABLE IF NOT EXISTS wish (sku text PRIMARY KEY, answer text NOT NULL)"))
        connection.execute(text("INSERT INTO wish VALUES ('gone', 'cancelled'), ('old', 'superseded')"))
        enqueue_many(connection, of, [Stock(name, 1, 1) for name in names])


def became(ledger: Bed) -> dict[str, tuple[str, str, int]]:
    rows = ledger.rows("SELECT entity, state, reason, attempt FROM counterfoil.state JOIN counterfoil.operation USING (number)")
    return {row["entity"].split(",")[0].strip("("): (row["state"], row["reason"], row["attempt"]) for row in rows}


async def test_what_nobody_wants_any_more_is_closed_and_never_sent(ledger: Bed, proxy: FaultProxy, sent: list[str]) -> None:
    """S1, S3: cancelled and superseded are final with no attempt and one state record each; the rest of the batch goes on."""
    of = outside(sent)
    fill(ledger, of, "a", "gone", "b", "old", "c")
    with cut_line(ledger, of, proxy) as line:
        await line.work_off()
    closed = {"gone": ("not_applicable", "cancelled", 0), "old": ("not_applicable", "superseded", 0)}
    assert became(ledger) == {**dict.fromkeys("abc", ("succeeded", "receipt", 1)), **closed}
    assert sorted(sent) == ["a", "b", "c"]
    reported = (
        "SELECT count(*) FROM counterfoil.outbox JOIN counterfoil.state USING (number) WHERE kind = 'state' AND state = :state"
    )
    assert ledger.rows(reported, state="not_applicable") == [{"count": 2}]


async def test_a_question_that_fails_sets_its_own_operation_aside_and_no_other(
    ledger: Bed, proxy: FaultProxy, sent: list[str]
) -> None:
    """S12, L3: whatever it raises, and whatever it does to its transaction, the others are asked and sent; nothing is changed."""
    of = outside(sent)
    fill(ledger, of, "a", "raises", "b", "breaks", "writes", "ends", "gone", "c")
    with cut_line(ledger, of, proxy) as line:
        await line.work_off()
    failed = ("quarantined", "still_wanted_failed", 0)
    assert became(ledger) == {
        **dict.fromkeys("abc", ("succeeded", "receipt", 1)),
        **dict.fromkeys(("raises", "breaks", "writes", "ends"), failed),
        "gone": ("not_applicable", "cancelled", 0),
    }
    assert ledger.one("SELECT count(*) FROM wish") == 2
    assert ledger.one("SELECT count(*) FROM counterfoil.outbox WHERE kind = 'dead_letter'") == 4


async def test_a_doubtful_operation_that_nobody_wants_is_looked_up_and_not_sent(
    ledger: Bed, proxy: FaultProxy, sent: list[str]
) -> None:
    """S10, S11: the wish is remembered like a cancel, so no resend under the key goes past it."""
    of = outside(sent)
    fill(ledger, of, "gone")
    doubt = """UPDATE counterfoil.state SET state = 'retry_wait', attempt = 1, sequence = 2, outcome = 'uncertain',
        unresolved = true, doubtful_since = now(), doubtful_revision = 1, doubtful_generation = 0, admitted_at = now()"""
    with ledger.engine.begin() as connection:
        connection.execute(text(doubt))
    with cut_line(ledger, of, proxy) as line:
        await line.work_off()
    assert became(ledger) == {"gone": ("awaiting_confirmation", "cancel_asked", 1)}
    assert ledger.rows("SELECT cancel_asked FROM counterfoil.state") == [{"cancel_asked": True}]
    assert sent == []


async def test_bytes_that_the_ledger_did_not_write_are_not_asked_about(ledger: Bed, proxy: FaultProxy, sent: list[str]) -> None:
    """S8: a forged record cancels nothing."""
    of = outside(sent)
    fill(ledger, of, "gone")
    with ledger.engine.begin() as connection:
        connection.execute(text("UPDATE counterfoil.payload SET value_hash = sha256('other')"))
    with cut_line(ledger, of, proxy) as line:
        await line.work_off()
    assert became(ledger) == {"gone": ("queued", "accepted", 0)}
    assert ledger.rows("SELECT reason FROM counterfoil.raw_record") == [{"reason": "digest_mismatch"}]


async def test_effects_in_the_ledger_are_asked_too(ledger: Bed, proxy: FaultProxy) -> None:
    """S1: a batch leaves out what nobody wants."""
    of = replace(upsert_projection, still_wanted=still_wanted)
    fill(ledger, of, "a", "gone", "b")
    with ledger.engine.begin() as connection:
        connection.execute(text(STOCK_VIEW))
    with cut_line(ledger, of, proxy) as line:
        await line.work_off()
    assert ledger.rows("SELECT sku FROM stock_view ORDER BY sku") == [{"sku": "a"}, {"sku": "b"}]
    assert became(ledger)["gone"] == ("not_applicable", "cancelled", 0)
