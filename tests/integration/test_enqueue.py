"""Accepting operations, on real PostgreSQL: what a caller's transaction leaves, and what it is refused."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import Engine, create_engine, text
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session

from counterfoil import Cancelled, Refused, State, cancel, enqueue, enqueue_many, operation_id, status, statuses
from counterfoil.core.chain import event_content, head_after
from counterfoil.core.reasons import Reason
from counterfoil.enqueue import enqueue_prepared, prepare
from counterfoil.ledger.names import ledger_of
from examples.charge_card import Charge, charge_card
from examples.upsert_projection import Stock
from tests.support.ledgers import Bed
from tests.support.stock import upsert_projection
from tests.support.waiting import eventually

COUNTS = """
SELECT (SELECT count(*) FROM counterfoil.operation) AS operations, (SELECT count(*) FROM counterfoil.payload) AS payloads,
    (SELECT count(*) FROM counterfoil.state) AS states, (SELECT count(*) FROM counterfoil.event) AS events,
    (SELECT count(*) FROM counterfoil.outbox) AS outbox
"""


def counts(ledger: Bed) -> set[int]:
    return set(ledger.rows(COUNTS)[0].values())


def test_an_operation_and_its_outbox_row_are_one_transaction_of_the_caller(ledger: Bed) -> None:
    """S4."""
    with ledger.engine.begin() as connection:
        accepted = enqueue(connection, upsert_projection, Stock("a", 1, 5), correlation_id="order-9")
        assert status(connection, accepted).state is State.QUEUED
        assert accepted == operation_id(connection, upsert_projection, Stock("a", 1, 7))
    assert counts(ledger) == {1}
    with ledger.engine.begin() as connection:
        assert [each.operation_id for each in statuses(connection, correlation_id="order-9")] == [accepted]


def test_a_rolled_back_transaction_leaves_nothing(ledger: Bed) -> None:
    """S4."""
    with ledger.engine.connect() as connection:
        enqueue(connection, upsert_projection, Stock("a", 1, 5))
        connection.rollback()
    assert counts(ledger) == {0}


def test_a_callers_own_engine_and_session_will_do(ledger: Bed) -> None:
    engine = create_engine(ledger.url.replace("postgresql://", "postgresql+psycopg://"))
    with Session(engine) as session, session.begin():
        session.execute(text("CREATE TABLE orders (id int)"))
        enqueue(session, upsert_projection, Stock("a", 1, 5))
        # The caller's own lists still travel as before.
        assert session.execute(text("SELECT 2 = ANY(:ids)"), {"ids": [1, 2]}).scalar_one() is True
    engine.dispose()
    assert counts(ledger) == {1}


@pytest.mark.parametrize("kind", [lambda engine: engine, lambda _: "postgresql://", lambda _: None])
def test_what_is_no_connection_is_refused_with_what_to_hand_in(ledger: Bed, kind: Callable[[Engine], Any]) -> None:
    handed = kind(ledger.engine)
    with pytest.raises(Refused) as refused:
        enqueue(handed, upsert_projection, Stock("a", 1, 5))
    if handed is ledger.engine:
        assert refused.value.reason is Reason.CALLER_IS_ENGINE
        assert "Use `with engine.begin() as connection:`" in str(refused.value)
    else:
        assert refused.value.reason is Reason.CALLER_UNKNOWN
    assert "synchronous" not in str(refused.value)


async def test_an_async_session_goes_through_run_sync(ledger: Bed) -> None:
    engine = create_async_engine(ledger.url.replace("postgresql://", "postgresql+psycopg://"))
    async with AsyncSession(engine) as session:
        with pytest.raises(Refused) as refused:
            enqueue(session, upsert_projection, Stock("a", 1, 5))  # type: ignore[arg-type]  # what a user without mypy writes
        assert refused.value.reason is Reason.CALLER_NOT_SYNC
        assert "run_sync" in str(refused.value)
        with pytest.raises(Refused, match="run_sync"):
            enqueue(await session.connection(), upsert_projection, Stock("a", 1, 5))  # type: ignore[arg-type]
        await session.run_sync(lambda s: enqueue(s, upsert_projection, Stock("a", 1, 5)))
        await session.commit()
    await engine.dispose()
    assert counts(ledger) == {1}


def test_a_connection_that_commits_by_itself_is_refused(ledger: Bed) -> None:
    """S4: without a transaction the caller's rows and the operation are not one."""
    with ledger.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        with pytest.raises(Refused) as refused:
            enqueue(connection, upsert_projection, Stock("a", 1, 5))
        assert refused.value.reason is Reason.NO_TRANSACTION


def test_the_same_content_twice_is_one_operation_and_other_content_a_conflict(ledger: Bed) -> None:
    """S21, D56."""
    with ledger.engine.begin() as connection:
        first = enqueue(connection, upsert_projection, Stock("a", 1, 5))
        assert enqueue(connection, upsert_projection, Stock("a", 1, 5)) == first
    with ledger.engine.begin() as connection:
        assert enqueue_many(connection, upsert_projection, [Stock("a", 1, 5), Stock("b", 1, 5), Stock("a", 1, 5)])[::2] == [
            first,
            first,
        ]
        with pytest.raises(Refused) as refused:
            enqueue(connection, upsert_projection, Stock("a", 1, 6))
        assert refused.value.reason is Reason.IDENTITY_CONFLICT
        assert str(first) in str(refused.value)
    assert counts(ledger) == {2}


def test_enqueue_many_is_all_or_none_and_keeps_the_order_given(ledger: Bed) -> None:
    """A refused payload after several statements takes back its own call only; the caller's transaction goes on."""
    with ledger.engine.begin() as connection:
        enqueue(connection, upsert_projection, Stock("kept", 1, 1))
        with pytest.raises(Refused) as refused:
            enqueue_many(connection, upsert_projection, (Stock(f"s{n}", 1, n if n != 2500 else 2**70) for n in range(3000)))
        assert refused.value.path == "on_hand"
        many = enqueue_many(connection, upsert_projection, (Stock(f"s{n}", 1, n) for n in range(2500)))
        assert many == [operation_id(connection, upsert_projection, Stock(f"s{n}", 1, 0)) for n in range(2500)]
    assert counts(ledger) == {2501}


def test_prepared_operations_are_written_later(ledger: Bed) -> None:
    with ledger.engine.begin() as connection:
        prepared = prepare(connection, upsert_projection, [Stock(f"s{n}", 1, n) for n in range(1500)])
        assert "s7" not in repr(prepared)
    assert counts(ledger) == {0}
    with ledger.engine.begin() as connection:
        assert len(enqueue_prepared(connection, prepared)) == 1500
    assert counts(ledger) == {1500}


@pytest.mark.parametrize(
    ("field", "value", "reason"),
    [
        ("sku", "a\x00b", Reason.FORBIDDEN_TEXT),
        ("sku", "\ud83d", Reason.FORBIDDEN_TEXT),
        ("on_hand", True, Reason.WRONG_TYPE),
        ("on_hand", 1.9, Reason.WRONG_TYPE),
        ("on_hand", float("nan"), Reason.WRONG_TYPE),
        ("on_hand", 2**63, Reason.NUMBER_OUT_OF_RANGE),
        ("on_hand", "5", Reason.WRONG_TYPE),
    ],
)
def test_what_a_later_part_would_refuse_is_refused_here(ledger: Bed, field: str, value: Any, reason: Reason) -> None:
    """D38, D53, D55: before anything is written; the transaction of the caller goes on."""
    payload = replace(Stock("a", 1, 5), **{field: value})
    with ledger.engine.begin() as connection:
        with pytest.raises(Refused) as refused:
            enqueue(connection, upsert_projection, payload)
        assert refused.value.reason is reason
        enqueue(connection, upsert_projection, Stock("good", 1, 5))
    assert counts(ledger) == {1}


def test_no_refusal_says_a_value(ledger: Bed) -> None:
    """D52, S18."""
    charge = Charge(UUID(int=7), "4111-SECRET", Decimal("1.234567"), "EUR")
    with ledger.engine.begin() as connection, pytest.raises(Refused) as refused:
        enqueue(connection, charge_card, charge)
    assert refused.value.path == "amount"
    assert "4111" not in str(refused.value) + repr(refused.value)
    assert "1.23" not in str(refused.value) + repr(refused.value)


def test_a_naive_not_before_is_refused_and_an_aware_one_waits(ledger: Bed) -> None:
    """D37."""
    with ledger.engine.begin() as connection:
        with pytest.raises(Refused) as refused:
            enqueue(connection, upsert_projection, Stock("a", 1, 5), not_before=datetime(2030, 1, 1))  # noqa: DTZ001
        assert refused.value.reason is Reason.NAIVE_DATETIME
        later = datetime.now(UTC) + timedelta(hours=1)
        assert status(connection, enqueue(connection, upsert_projection, Stock("a", 1, 5), not_before=later)).due_at == later


def test_two_callers_with_one_identity_get_one_operation(ledger: Bed) -> None:
    """D58: the second waits for the first one's commit and then reads what it wrote."""
    got: list[UUID] = []

    def second() -> None:
        with ledger.engine.begin() as connection:
            got.append(enqueue(connection, upsert_projection, Stock("a", 1, 5)))

    with ledger.engine.connect() as connection:
        first = enqueue(connection, upsert_projection, Stock("a", 1, 5))
        waiting = threading.Thread(target=second)
        waiting.start()
        eventually(
            lambda: ledger.one(
                "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
            )
        )
        connection.commit()
    waiting.join(15)
    assert got == [first]
    assert counts(ledger) == {1}


def test_two_batches_in_other_orders_do_not_deadlock(ledger: Bed) -> None:
    """D88."""
    start = threading.Barrier(2)
    errors: list[Exception] = []

    def caller(payloads: list[Stock]) -> None:
        try:
            for turn in range(10):
                start.wait(15)
                with ledger.engine.begin() as connection:
                    enqueue_many(connection, upsert_projection, [replace(each, version=turn) for each in payloads])
        except Exception as error:  # noqa: BLE001  # whatever it is, the test must show it
            errors.append(error)

    stocks = [Stock(f"s{n}", 1, n) for n in range(200)]
    threads = [threading.Thread(target=caller, args=(order,)) for order in (stocks, stocks[::-1])]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not errors
    assert counts(ledger) == {2000}


def test_a_cancel_before_the_first_attempt_has_no_effect_and_a_late_one_says_so(ledger: Bed) -> None:
    with ledger.engine.begin() as connection:
        accepted = enqueue(connection, upsert_projection, Stock("a", 1, 5))
        with pytest.raises(Refused) as refused:
            cancel(connection, accepted, reason=" ")
        assert refused.value.reason is Reason.REASON_MISSING
        assert "who asked for it and why" in str(refused.value)
        assert cancel(connection, accepted, reason="asked by the customer") is Cancelled.NOW
        assert cancel(connection, accepted, reason="again") is Cancelled.TOO_LATE
        assert status(connection, accepted).state is State.NOT_APPLICABLE
    event = ledger.rows("SELECT detail FROM counterfoil.event WHERE kind = 'not_applicable'")
    assert event[0]["detail"]["why"] == "asked by the customer"
    assert event[0]["detail"]["actor"]


def test_an_unknown_operation_is_refused_by_name(ledger: Bed) -> None:
    with ledger.engine.begin() as connection, pytest.raises(Refused) as refused:
        status(connection, UUID(int=5))  # type: ignore[arg-type]  # a plain UUID will do
    assert refused.value.reason is Reason.UNKNOWN_OPERATION


def test_the_first_events_hash_covers_the_operation(ledger: Bed) -> None:
    """S15."""
    with ledger.engine.begin() as connection:
        enqueue(connection, upsert_projection, Stock("a", 1, 5))
        secret = ledger_of(connection).secret
    row = ledger.rows("SELECT e.*, o.digest FROM counterfoil.event e JOIN counterfoil.operation o USING (number)")[0]
    content = event_content(secret, "accepted", "accepted", bytes(row["digest"]))
    assert bytes(row["content"]) == content
    assert bytes(row["chain"]) == head_after(b"", row["number"], 0, "accepted", content)
