"""The connection dies at COMMIT, before the server has applied it or after: the client cannot tell, so it reads again (D89).

The proxy cuts exactly the transaction that a test is about: each time the effect, or the caller, arms it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import pytest
from sqlalchemy import Connection, create_engine, exc, text

from counterfoil import (
    Attempt,
    Effect,
    Errors,
    InLedger,
    InLedgerBatch,
    Item,
    NotAtAll,
    OperationId,
    OperationType,
    Receipt,
    Refused,
    Sink,
    State,
    enqueue,
    enqueue_many,
    operation_id,
    seconds,
    status,
)
from counterfoil.core.reasons import Reason
from counterfoil.ledger.admission import Admission, Why, admit
from counterfoil.parts import FaultProxy, fault_proxy
from examples.upsert_projection import Stock
from tests.support.lanes import cut_line
from tests.support.ledgers import Bed
from tests.support.stock import Hand, upsert_projection

both = pytest.mark.parametrize("applied", [False, True], ids=["before the server applied it", "after the server applied it"])


class Busy(Exception):
    """Certainly not applied; later may differ."""


class Rejected(Exception):
    """Certainly not applied, and repeating cannot help."""


#: No repeat is harmless here: a second request would be a second effect.
ONCE = Sink("once", NotAtAll(), request_life=seconds(1), read_lag=seconds(0))
ERRORS = Errors(temporary=(Busy,), permanent=(Rejected,))


def outside(effect: Callable[[Stock, Attempt], Receipt]) -> OperationType[Stock]:
    """A type whose effect is outside the ledger, where nobody can look it up."""
    declared = Effect[Stock](effect, ONCE, timeout=seconds(5), errors=ERRORS)
    return replace(upsert_projection, name="outside", effect=declared, proof=None)


@pytest.fixture
def proxy(ledger: Bed) -> Iterator[FaultProxy]:
    with fault_proxy(ledger.server.port) as proxy:
        yield proxy


def fill(ledger: Bed, operation_type: OperationType[Stock], count: int = 3) -> None:
    with ledger.engine.begin() as connection:
        enqueue_many(connection, operation_type, [Stock(f"s{n}", 1, n) for n in range(count)])


def kinds(ledger: Bed, number: int) -> list[str]:
    query = "SELECT kind FROM counterfoil.event WHERE number = :number ORDER BY ordinal"
    return [row["kind"] for row in ledger.rows(query, number=number)]


def standings(ledger: Bed) -> list[tuple[int, str, int, str]]:
    query = "SELECT number, state, attempt, outcome FROM counterfoil.state ORDER BY number"
    return [(row["number"], row["state"], row["attempt"], row["outcome"]) for row in ledger.rows(query)]


def outbox(ledger: Bed, kind: str) -> list[int]:
    query = "SELECT number FROM counterfoil.outbox WHERE kind = :kind ORDER BY number"
    return [row["number"] for row in ledger.rows(query, kind=kind)]


# -- the caller


@both
def test_a_caller_reads_by_operation_id_and_writes_again_only_what_is_not_there(
    ledger: Bed, proxy: FaultProxy, applied: bool
) -> None:
    """D89, S4: business row, operation and outbox row are there once, or none of them was."""
    with ledger.engine.begin() as connection:
        connection.execute(text("CREATE TABLE orders (id int)"))
    url = ledger.server.url_of(ledger.database.name, port=proxy.port)
    engine = create_engine(url.replace("postgresql://", "postgresql+psycopg://"))

    def order(connection: Connection) -> OperationId:
        connection.execute(text("INSERT INTO orders VALUES (1)"))
        return enqueue(connection, upsert_projection, Stock("a", 1, 5))

    cut = proxy.cut_at(b"COMMIT", delivered=applied)
    with pytest.raises(exc.OperationalError), engine.begin() as connection:
        order(connection)
    assert cut.is_set()
    with engine.begin() as connection:
        asked = operation_id(connection, upsert_projection, Stock("a", 1, 5))
        if applied:
            assert status(connection, asked).state is State.QUEUED
        else:
            with pytest.raises(Refused) as refused:
                status(connection, asked)
            assert refused.value.reason is Reason.UNKNOWN_OPERATION
            assert order(connection) == asked
    engine.dispose()
    for table in ("orders", "counterfoil.operation", "counterfoil.payload", "counterfoil.state", "counterfoil.outbox"):
        assert ledger.one(f"SELECT count(*) FROM {table}") == 1, table


@both
def test_a_caller_that_enqueues_again_without_looking_gets_the_same_operation(
    ledger: Bed, proxy: FaultProxy, applied: bool
) -> None:
    """D89, S1."""
    engine = create_engine(
        ledger.server.url_of(ledger.database.name, port=proxy.port).replace("postgresql://", "postgresql+psycopg://")
    )
    stocks = [Stock(f"s{n}", 1, n) for n in range(3)]
    proxy.cut_at(b"COMMIT", delivered=applied)
    with pytest.raises(exc.OperationalError), engine.begin() as connection:
        first = enqueue_many(connection, upsert_projection, stocks)
    with engine.begin() as connection:
        assert enqueue_many(connection, upsert_projection, stocks) == first
    engine.dispose()
    assert ledger.one("SELECT count(*) FROM counterfoil.operation") == 3
    assert len(outbox(ledger, "command")) == 3
    assert ledger.one("SELECT count(*) FROM counterfoil.event") == 3


# -- the worker admits


@both
async def test_an_admission_whose_commit_was_not_answered_runs_each_effect_once(
    ledger: Bed, proxy: FaultProxy, applied: bool
) -> None:
    """D89, S8: the attempt that the ledger has counted is the one that is sent; none is left as if it had been."""
    sent: list[str] = []

    def push(stock: Stock, attempt: Attempt) -> Receipt:
        sent.append(stock.sku)
        return Receipt("r-1")

    operation_type = outside(push)
    fill(ledger, operation_type)
    with cut_line(ledger, operation_type, proxy) as line:
        cut = proxy.cut_at(b"COMMIT", delivered=applied)
        await line.work_off()
    assert cut.is_set()
    assert sorted(sent) == ["s0", "s1", "s2"]
    assert standings(ledger) == [(number, "succeeded", 1, "done") for number in (1, 2, 3)]
    assert kinds(ledger, 1) == ["accepted", "admitted", "result_saved"]


@both
async def test_an_admission_of_an_effect_in_the_ledger_is_repeated_without_a_second_row(
    ledger: Bed, proxy: FaultProxy, applied: bool
) -> None:
    """D89, S8."""
    with ledger.engine.begin() as connection:
        connection.execute(text("CREATE TABLE applied (sku text)"))

    def write(connection: Connection, items: Sequence[Item[Stock]]) -> None:
        connection.execute(text("INSERT INTO applied VALUES (:sku)"), [{"sku": item.payload.sku} for item in items])

    operation_type = replace(upsert_projection, effect=InLedgerBatch[Stock](write, size=100))
    fill(ledger, operation_type)
    with cut_line(ledger, operation_type, proxy) as line:
        cut = proxy.cut_at(b"COMMIT", delivered=applied)
        await line.work_off()
    assert cut.is_set()
    assert ledger.rows("SELECT sku FROM applied ORDER BY sku") == [{"sku": f"s{n}"} for n in range(3)]
    assert standings(ledger) == [(number, "confirmed", 1, "done") for number in (1, 2, 3)]
    assert kinds(ledger, 1) == ["accepted", "admitted", "result_saved"]


def test_an_attempt_that_another_admission_counted_is_not_taken_for_ones_own(ledger: Bed) -> None:
    """D89, S8: the lost commit was not applied, and the same record was admitted by somebody else meanwhile."""
    fill(ledger, upsert_projection, 1)
    hand = Hand(ledger.engine)

    def asked(connection: Connection, unheard: Admission | None = None) -> Admission:
        known = unheard.admitted if unheard else {}
        return admit(connection, hand.writer, hand.session, hand.rules, hand.candidates(), known)

    with ledger.engine.connect() as connection:
        lost = asked(connection)
        connection.rollback()
    other = hand.admit()
    assert lost.admitted[1].attempt == other.admitted[1].attempt == 1
    with ledger.engine.begin() as connection:
        assert asked(connection, lost).left == {1: Why.COMPLETED}
    with ledger.engine.begin() as connection:
        assert asked(connection, other).admitted == other.admitted


# -- the worker settles


@both
@pytest.mark.parametrize(
    ("error", "state", "outcome", "kind", "letters"),
    [
        (None, "succeeded", "done", "result_saved", 0),
        (Busy, "retry_wait", "temporary", "retry_scheduled", 0),
        (Rejected, "quarantined", "permanent", "quarantined", 1),
        (ValueError, "awaiting_confirmation", "uncertain", "awaiting_confirmation", 0),
    ],
)
async def test_an_effect_is_not_repeated_because_the_save_of_its_answer_is_unknown(
    ledger: Bed,
    proxy: FaultProxy,
    applied: bool,
    error: type[Exception] | None,
    state: str,
    outcome: str,
    kind: str,
    letters: int,
) -> None:
    """D89, S8: one call, one saved answer, one state record and no more dead letters than one."""
    sent: list[str] = []

    def push(stock: Stock, attempt: Attempt) -> Receipt:
        sent.append(stock.sku)
        if stock.sku == "s0":
            proxy.cut_at(b"COMMIT", delivered=applied)
        if error is not None:
            raise error
        return Receipt("r-1")

    operation_type = outside(push)
    fill(ledger, operation_type, 1)
    with cut_line(ledger, operation_type, proxy) as line:
        await line.work_off()
    assert sent == ["s0"]
    assert standings(ledger) == [(1, state, 1, outcome)]
    assert kinds(ledger, 1) == ["accepted", "admitted", kind]
    assert outbox(ledger, "state") == [1]
    assert len(outbox(ledger, "dead_letter")) == letters


@both
@pytest.mark.parametrize("one_by_one", [False, True], ids=["as a batch", "one by one"])
async def test_an_effect_in_the_ledger_exists_once_when_the_answer_to_its_commit_is_lost(
    ledger: Bed, proxy: FaultProxy, applied: bool, one_by_one: bool
) -> None:
    """D89, S8: effect and answer are one commit, so what the ledger shows is what happened to both."""
    with ledger.engine.begin() as connection:
        connection.execute(text("CREATE TABLE applied (sku text)"))
    runs: list[str] = []

    def write(connection: Connection, stock: Stock, attempt: Attempt) -> None:
        if not runs:
            proxy.cut_at(b"COMMIT", delivered=applied)
        runs.append(stock.sku)
        connection.execute(text("INSERT INTO applied VALUES (:sku)"), {"sku": stock.sku})

    def write_all(connection: Connection, items: Sequence[Item[Stock]]) -> None:
        for item in items:
            write(connection, item.payload, item.attempt)

    effect = InLedger[Stock](write) if one_by_one else InLedgerBatch[Stock](write_all, size=100)
    operation_type = replace(upsert_projection, effect=effect)
    fill(ledger, operation_type)
    with cut_line(ledger, operation_type, proxy) as line:
        await line.work_off()
    assert len(runs) == (3 if applied else 6)
    assert ledger.rows("SELECT sku FROM applied ORDER BY sku") == [{"sku": f"s{n}"} for n in range(3)]
    assert standings(ledger) == [(number, "confirmed", 1, "done") for number in (1, 2, 3)]
    assert kinds(ledger, 1) == ["accepted", "admitted", "result_saved"]
    assert outbox(ledger, "state") == [1, 2, 3]
