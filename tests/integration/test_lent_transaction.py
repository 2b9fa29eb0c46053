"""What effects in the ledger do with the connection that they are lent: their errors, their commits and their settings."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
from psycopg.pq import TransactionStatus
from sqlalchemy import Connection, create_engine, exc, text

from counterfoil import Attempt, Errors, InLedger, InLedgerBatch, Item, OperationType, Receipt, Retry, enqueue_many, seconds
from counterfoil.core.effect import Backoff
from counterfoil.parts import FaultProxy, fault_proxy
from examples.upsert_projection import Stock
from tests.support.lanes import cut_line
from tests.support.ledgers import Bed
from tests.support.stock import upsert_projection


class Busy(Exception):
    """Certainly not applied; later may differ."""


ERRORS = Errors(temporary=(Busy,))
RETRY = Retry(max_tries=3, backoff=Backoff(seconds(0.1), cap=seconds(0.2)))
NAMES = ("good1", "bad", "good2")
ONE_FAILED = {"good1": "confirmed", "bad": "retry_wait", "good2": "confirmed"}


@pytest.fixture
def proxy(ledger: Bed) -> Iterator[FaultProxy]:
    with fault_proxy(ledger.server.port) as proxy:
        yield proxy


def one_by_one(bad: Callable[[Connection], Any]) -> OperationType[Stock]:
    """Each operation writes a row; the one named bad then does this."""

    def effect(connection: Connection, stock: Stock, attempt: Attempt) -> Receipt | None:
        connection.execute(text("INSERT INTO written VALUES (:sku)"), {"sku": stock.sku})
        answer = bad(connection) if stock.sku == "bad" else None
        return answer if isinstance(answer, Receipt) else None

    return replace(upsert_projection, name="one", effect=InLedger[Stock](effect, errors=ERRORS, retry=RETRY))


def fill(ledger: Bed, operation_type: OperationType[Stock], names: Sequence[str] = NAMES) -> None:
    with ledger.engine.begin() as connection:
        connection.execute(text("CREATE TABLE written (sku text)"))
        enqueue_many(connection, operation_type, [Stock(name, 1, n) for n, name in enumerate(names)])


def states(ledger: Bed) -> dict[str, str]:
    query = "SELECT o.entity, s.state FROM counterfoil.state s JOIN counterfoil.operation o USING (number)"
    return {row["entity"].split(",")[0].strip("("): row["state"] for row in ledger.rows(query)}


def written(ledger: Bed) -> list[str]:
    return [row["sku"] for row in ledger.rows("SELECT sku FROM written ORDER BY sku")]


def reason(ledger: Bed) -> str:
    return str(ledger.one("SELECT reason FROM counterfoil.state WHERE state = 'retry_wait'"))


async def work_off(ledger: Bed, proxy: FaultProxy, operation_type: OperationType[Stock]) -> None:
    fill(ledger, operation_type)
    with cut_line(ledger, operation_type, proxy) as line:
        await line.work_off()
        assert not line.desk.calls.line.lost_for, "the ledger was never away"


def sql(statement: str) -> Callable[[Connection], Any]:
    return lambda connection: connection.exec_driver_sql(statement)


# -- errors


def other_database(connection: Connection) -> None:
    create_engine("postgresql+psycopg://nobody@127.0.0.1:1/none").connect()


def other_pool(connection: Connection) -> None:
    raise exc.TimeoutError


@pytest.mark.parametrize(
    "bad",
    [
        other_database,
        other_pool,
        sql("SET TRANSACTION READ ONLY"),
        sql("DO $$ BEGIN RAISE SQLSTATE '53400'; END $$"),
        sql("DO $$ BEGIN RAISE SQLSTATE '57P01'; END $$"),
        sql("SELECT pg_terminate_backend(pg_backend_pid())"),
        lambda connection: connection.connection.driver_connection.close(),
    ],
    ids=["another database", "another pool", "read only", "53400", "57P01", "terminated", "closed"],
)
async def test_an_effects_own_database_error_is_its_own_and_not_the_ledgers(
    ledger: Bed, proxy: FaultProxy, bad: Callable[[Connection], Any]
) -> None:
    """L2, S2: one operation is tried again; its batch mates are settled and the worker does not take the ledger for lost."""
    await work_off(ledger, proxy, one_by_one(bad))
    assert states(ledger) == ONE_FAILED
    assert written(ledger) == ["good1", "good2"]


@pytest.mark.parametrize("error", [KeyboardInterrupt, GeneratorExit, SystemExit, Busy])
async def test_whatever_an_effect_in_the_ledger_raises_fails_it_alone(
    ledger: Bed, proxy: FaultProxy, error: type[BaseException]
) -> None:
    """L2, D64."""

    def bad(connection: Connection) -> None:
        raise error

    await work_off(ledger, proxy, one_by_one(bad))
    assert states(ledger) == ONE_FAILED
    assert written(ledger) == ["good1", "good2"]


async def test_a_receipt_that_skipped_its_checks_fails_its_operation_alone(ledger: Bed, proxy: FaultProxy) -> None:
    """L2, S2."""

    class Unchecked(Receipt):
        def __post_init__(self) -> None:
            pass

    await work_off(ledger, proxy, one_by_one(lambda connection: Unchecked(remote_id=5)))  # type: ignore[arg-type]
    assert states(ledger) == ONE_FAILED
    assert written(ledger) == ["good1", "good2"]


# -- the end of the transaction


def swallowed(connection: Connection) -> None:
    with suppress(BaseException):
        connection.commit()


@pytest.mark.parametrize(
    "bad",
    [
        lambda connection: connection.commit(),
        lambda connection: connection.rollback(),
        swallowed,
        lambda connection: connection.connection.driver_connection.commit(),
        lambda connection: connection.connection.driver_connection.rollback(),
        lambda connection: connection.connection.driver_connection.execute("COMMIT"),
        sql("COMMIT"),
        sql("  -- a remark\n /* and another */ end transaction"),
        sql("ROLLBACK"),
        sql("ROLLBACK AND CHAIN"),
        sql("abort"),
        sql("PREPARE TRANSACTION 'x'"),
    ],
    ids=range(12),
)
@pytest.mark.parametrize("raises", [False, True], ids=["and returns", "and raises"])
async def test_an_effect_cannot_end_the_transaction_that_it_is_lent(
    ledger: Bed, proxy: FaultProxy, bad: Callable[[Connection], Any], raises: bool
) -> None:
    """S1, S2: nothing of it stays, nothing of its batch mates is lost or doubled, and its reason says what it did."""

    def ends(connection: Connection) -> None:
        try:
            bad(connection)
        finally:
            if raises:
                raise Busy

    await work_off(ledger, proxy, one_by_one(ends))
    assert states(ledger) == ONE_FAILED
    assert written(ledger) == ["good1", "good2"]
    assert reason(ledger) == "effect_ended_transaction"


@pytest.mark.parametrize("how", ["commit", "rollback"])
async def test_a_refused_end_leaves_no_connection_inside_a_transaction(ledger: Bed, proxy: FaultProxy, how: str) -> None:
    """L2: the pool hands such a connection to the next unit, which would fail on it and end the worker."""
    operation_type = one_by_one(lambda connection: getattr(connection, how)())
    fill(ledger, operation_type)
    with cut_line(ledger, operation_type, proxy) as line:
        await line.work_off()
        pool = line.desk.calls.engine
        held = [pool.raw_connection() for _ in range(4)]
        inside = [each.driver_connection.info.transaction_status for each in held if each.driver_connection is not None]
        for each in held:
            each.close()
    assert inside == [TransactionStatus.IDLE] * 4


async def test_a_transaction_that_was_ended_behind_our_back_confirms_nothing(ledger: Bed, proxy: FaultProxy) -> None:
    """S2: it is another transaction, so what came before is not in it."""
    await work_off(ledger, proxy, one_by_one(sql("SELECT 1; ROLLBACK; BEGIN")))
    assert states(ledger) == ONE_FAILED
    assert written(ledger) == ["good1", "good2"]
    assert reason(ledger) == "effect_ended_transaction"


@pytest.mark.parametrize(
    "good",
    [
        sql("SAVEPOINT a; ROLLBACK TO SAVEPOINT a"),
        lambda connection: connection.begin_nested().rollback(),
        lambda connection: connection.begin_nested().commit(),
        sql("DO $$ BEGIN PERFORM 1; END $$"),
    ],
    ids=["sql", "rolled back", "released", "a block"],
)
async def test_an_effect_may_use_savepoints_and_blocks(ledger: Bed, proxy: FaultProxy, good: Callable[[Connection], Any]) -> None:
    """S2."""
    await work_off(ledger, proxy, one_by_one(good))
    assert states(ledger) == dict.fromkeys(NAMES, "confirmed")
    assert written(ledger) == ["bad", "good1", "good2"]


async def test_a_batch_that_ends_the_transaction_is_halved_down_to_the_one_that_does(ledger: Bed, proxy: FaultProxy) -> None:
    """S1, S2."""

    def effect(connection: Connection, items: Sequence[Item[Stock]]) -> None:
        for item in items:
            connection.execute(text("INSERT INTO written VALUES (:sku)"), {"sku": item.payload.sku})
            if item.payload.sku == "bad":
                connection.commit()

    operation_type = replace(upsert_projection, name="many", effect=InLedgerBatch[Stock](effect, size=100, retry=RETRY))
    await work_off(ledger, proxy, operation_type)
    assert states(ledger) == ONE_FAILED
    assert written(ledger) == ["good1", "good2"]


# -- the session

SETTINGS = """SELECT current_setting('statement_timeout'), current_setting('default_transaction_read_only'),
    current_user = session_user, current_setting('synchronous_commit'), current_setting('search_path')"""


@pytest.mark.parametrize(
    "statement",
    [
        "SET statement_timeout = '5s'",
        "SET default_transaction_read_only = on",
        "SET ROLE pg_read_all_data",
        "SET SESSION AUTHORIZATION pg_read_all_data",
        "SET synchronous_commit = off",
        "SET search_path = pg_temp",
    ],
)
async def test_a_setting_of_an_effect_ends_with_its_transaction(ledger: Bed, proxy: FaultProxy, statement: str) -> None:
    """L2, S8: the next unit on the connection finds it as it was made."""
    operation_type = one_by_one(sql(statement))
    fill(ledger, operation_type, ["bad"])
    with cut_line(ledger, operation_type, proxy) as line:
        before = line.desk.calls.run(lambda connection: connection.exec_driver_sql(SETTINGS).one())
        await line.work_off()
        held = [line.desk.calls.engine.connect() for _ in range(line.desk.calls.engine.pool.size())]  # type: ignore[attr-defined]
        seen = {tuple(connection.exec_driver_sql(SETTINGS).one()) for connection in held}
        for connection in held:
            connection.close()
    assert seen == {tuple(before)}
    assert states(ledger) == {"bad": "confirmed"}


async def test_a_local_setting_does_not_reach_the_commit(ledger: Bed, proxy: FaultProxy) -> None:
    """S8: an outcome is never committed asynchronously because its effect wished so."""
    with ledger.engine.begin() as connection:
        connection.execute(text("CREATE TABLE how (setting text)"))
        connection.execute(
            text("""CREATE FUNCTION note_how() RETURNS trigger LANGUAGE plpgsql AS $$
            BEGIN INSERT INTO public.how VALUES (current_setting('synchronous_commit')); RETURN NULL; END $$""")
        )
        connection.execute(
            text("""CREATE CONSTRAINT TRIGGER note_how AFTER UPDATE ON counterfoil.state
            DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION note_how()""")
        )
    await work_off(ledger, proxy, one_by_one(sql("SET LOCAL synchronous_commit = off")))
    assert {row["setting"] for row in ledger.rows("SELECT setting FROM how")} == {"on"}
