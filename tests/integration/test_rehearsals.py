"""Rehearsals of users' types: the example that a user copies, and what it does not show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import pytest
from sqlalchemy import Connection, create_engine, text

from counterfoil import (
    Attempt,
    InLedger,
    InLedgerBatch,
    Item,
    Operations,
    OperationType,
    Policy,
    State,
    Strict,
    Wanted,
    cancel,
    enqueue,
    enqueue_many,
    hours,
    minutes,
    seconds,
    status,
)
from counterfoil.parts import Postgres
from counterfoil.testing import Fault, assert_effect_once, rehearse
from examples.adopt_legacy_job import Run, adopt_legacy_job
from examples.clients import crm
from examples.export_report import Report, export_report
from examples.operations import OPERATIONS
from examples.send_mail import Mail, send_mail
from examples.sync_customer import Customer, sync_customer
from examples.test_your_operations import (
    test_a_crm_that_cannot_be_reached_is_tried_again_later,
    test_a_customer_arrives_once_although_its_record_comes_twice,
    test_a_mail_whose_answer_is_lost_is_never_sent_twice,
    test_a_worker_that_is_killed_leaves_the_projection_written_once,
    test_the_declarations_have_no_mistake,
    test_what_the_crm_refuses_is_not_tried_again,
)
from examples.upsert_projection import UPSERT, Stock, upsert_projection
from tests.support.invariants import chains_verify, nothing_is_forgotten
from tests.support.stock import STOCK_VIEW

__all__ = [
    "test_a_crm_that_cannot_be_reached_is_tried_again_later",
    "test_a_customer_arrives_once_although_its_record_comes_twice",
    "test_a_mail_whose_answer_is_lost_is_never_sent_twice",
    "test_a_worker_that_is_killed_leaves_the_projection_written_once",
    "test_the_declarations_have_no_mistake",
    "test_what_the_crm_refuses_is_not_tried_again",
]


@pytest.fixture(scope="session")
def database(postgres: Postgres) -> str:
    """The run's own server, for the example's tests too."""
    return postgres.url


def only(operation_type: OperationType[Any], **changes: Any) -> tuple[Operations, OperationType[Any]]:
    changed = replace(operation_type, **changes)
    return Operations(changed), changed


def test_a_late_call_reaches_the_sink_when_the_clock_moves(database: str) -> None:
    with rehearse(OPERATIONS, database) as rehearsal:
        it = enqueue(rehearsal.connection, sync_customer, Customer("late", 1, "a@b.c"))
        rehearsal.run(Fault.LATE_APPLY)
        assert status(rehearsal.connection, it).state is State.AWAITING_CONFIRMATION
        assert (crm.get("late"), len(rehearsal.calls(it))) == (None, 0)
        rehearsal.advance(seconds(30))
        assert crm.get("late") is not None
        assert status(rehearsal.connection, it).state is State.AWAITING_CONFIRMATION
        chains_verify(rehearsal.connection.engine)
        nothing_is_forgotten(rehearsal.connection.engine)


def test_a_killed_worker_is_found_when_its_lease_is_over_and_its_record_comes_again(database: str) -> None:
    """S10."""
    with rehearse(OPERATIONS, database) as rehearsal:
        it = enqueue(rehearsal.connection, sync_customer, Customer("killed", 1, "a@b.c"))
        rehearsal.run(Fault.KILLED_BEFORE_SETTLE)
        rehearsal.run()
        assert status(rehearsal.connection, it).state is State.RUNNING
        rehearsal.advance(minutes(1))
        rehearsal.run()
        assert status(rehearsal.connection, it).state is State.AWAITING_CONFIRMATION
        assert len(rehearsal.calls(it)) == 1
        nothing_is_forgotten(rehearsal.connection.engine)


def test_what_nobody_can_probe_is_sent_again_under_its_key_and_the_second_fault_strikes_the_second_attempt(database: str) -> None:
    """S10."""
    operations, keyed = only(sync_customer, proof=None, policy=Policy())
    with rehearse(operations, database) as rehearsal:
        it = enqueue(rehearsal.connection, keyed, Customer("keyed", 1, "a@b.c"))
        rehearsal.run(Fault.ANSWER_LOST)
        rehearsal.advance(hours(1))
        rehearsal.run()
        assert status(rehearsal.connection, it).state is State.SUCCEEDED
        assert len({call.key for call in rehearsal.calls(it)}) == 1
        assert [call.number for call in rehearsal.calls(it)] == [1, 2]
        assert_effect_once(rehearsal, it)


def test_a_repeat_that_the_sink_does_not_make_harmless_is_told(database: str) -> None:
    """A person's risk, or a fault of ours: whoever tests asks how often it was called."""
    with rehearse(OPERATIONS, database) as rehearsal:
        mail = enqueue(rehearsal.connection, send_mail, Mail("twice", "a@b.c", "welcome"))
        with pytest.raises(AssertionError, match=r"send_mail .* is queued: its effect is not known to exist"):
            assert_effect_once(rehearsal, mail)
        rehearsal.run()
        assert_effect_once(rehearsal, mail)
        [call] = rehearsal.calls(mail)
        with patch.object(rehearsal, "calls", lambda _: [call, call]), pytest.raises(AssertionError, match="2 calls at mail"):
            assert_effect_once(rehearsal, mail)
        with patch.object(rehearsal, "calls", lambda _: []), pytest.raises(AssertionError, match="never called"):
            assert_effect_once(rehearsal, mail)


def test_calls_under_two_keys_are_told(database: str) -> None:
    with rehearse(OPERATIONS, database) as rehearsal:
        it = enqueue(rehearsal.connection, sync_customer, Customer("keys", 1, "a@b.c"))
        rehearsal.run()
        [call] = rehearsal.calls(it)
        calls = [call, replace(call, key="another")]
        with (
            patch.object(rehearsal, "calls", lambda _: calls),
            pytest.raises(AssertionError, match="2 calls under 2 keys at crm"),
        ):
            assert_effect_once(rehearsal, it)


async def test_an_async_effect_runs_below_a_test_that_has_a_loop_of_its_own(database: str) -> None:
    with rehearse(OPERATIONS, database) as rehearsal:
        it = enqueue(rehearsal.connection, export_report, Report("r-1", "2026-11"))
        rehearsal.run()
        assert status(rehearsal.connection, it).state is State.SUCCEEDED
        [call] = rehearsal.calls(it)
        assert call.timeout == 300


def test_what_another_program_does_is_never_called(database: str) -> None:
    with rehearse(OPERATIONS, database) as rehearsal:
        it = enqueue(rehearsal.connection, adopt_legacy_job, Run("run-1", "452"))
        rehearsal.run()
        assert status(rehearsal.connection, it).state is State.AWAITING_CONFIRMATION
        assert not rehearsal.calls(it)


def test_a_cancelled_operation_and_one_that_is_not_wanted_are_not_called(database: str) -> None:
    operations, asked = only(
        sync_customer, still_wanted=lambda customer, _: Wanted.CANCELLED if customer.id == "no" else Wanted.YES
    )
    with rehearse(operations, database) as rehearsal:
        unwanted = enqueue(rehearsal.connection, asked, Customer("no", 1, "a@b.c"))
        wanted = enqueue(rehearsal.connection, asked, Customer("yes", 1, "a@b.c"))
        gone = enqueue(rehearsal.connection, asked, Customer("gone", 1, "a@b.c"))
        cancel(rehearsal.connection, gone, reason="asked by the customer")
        rehearsal.run()
        states = [status(rehearsal.connection, it).state for it in (unwanted, wanted, gone)]
        assert states == [State.NOT_APPLICABLE, State.SUCCEEDED, State.NOT_APPLICABLE]
        assert [len(rehearsal.calls(it)) for it in (unwanted, wanted, gone)] == [0, 1, 0]


def test_operations_of_one_entity_keep_their_order_in_one_run(database: str) -> None:
    operations, strict = only(sync_customer, order=Strict[Customer](identity=lambda c: (c.id, c.version), entity=lambda c: c.id))
    with rehearse(operations, database) as rehearsal:
        ids = enqueue_many(rehearsal.connection, strict, [Customer("ordered", version, "a@b.c") for version in range(1, 4)])
        rehearsal.run()
        positions = [call.position for it in ids for call in rehearsal.calls(it)]
        assert positions == sorted(positions, key=lambda place: place or 0)
        row = crm.get("ordered")
        assert row is not None
        assert row.version == 3


def write_some(connection: Connection, items: Sequence[Item[Stock]]) -> None:
    for item in items:
        connection.execute(UPSERT, {"sku": item.payload.sku, "version": 1, "on_hand": item.payload.on_hand})
        if item.payload.sku == "odd":
            raise LookupError


def test_one_operation_of_a_batch_that_raises_leaves_the_others_written(database: str) -> None:
    operations, stock = only(upsert_projection, effect=InLedgerBatch[Stock](write_some, size=10))
    with rehearse(operations, database) as rehearsal:
        rehearsal.connection.execute(text(STOCK_VIEW))
        ids = enqueue_many(rehearsal.connection, stock, [Stock(sku, 1, 1) for sku in ("a", "odd", "b")])
        rehearsal.run()
        states = [status(rehearsal.connection, it).state for it in ids]
        assert states == [State.CONFIRMED, State.RETRY_WAIT, State.CONFIRMED]
        there = rehearsal.connection.execute(text("SELECT sku FROM stock_view ORDER BY sku")).scalars().all()
        assert there == ["a", "b"]


def commits(connection: Connection, stock: Stock, attempt: Attempt) -> None:
    connection.commit()


def answers_wrongly(connection: Connection, stock: Stock, attempt: Attempt) -> Any:
    return "done"


@pytest.mark.parametrize(("call", "reason"), [(commits, "effect_ended_transaction"), (answers_wrongly, "wrong_answer")])
def test_an_effect_in_the_ledger_is_held_to_the_workers_rules(database: str, call: Any, reason: str) -> None:
    operations, stock = only(upsert_projection, effect=InLedger[Stock](call))
    with rehearse(operations, database) as rehearsal:
        it = enqueue(rehearsal.connection, stock, Stock("a", 1, 1))
        rehearsal.run()
        told = status(rehearsal.connection, it)
        assert (told.state, told.reason) == (State.RETRY_WAIT, reason)


def test_a_rehearsal_leaves_nothing_behind_and_touches_no_other_database(database: str) -> None:
    listed = text("SELECT datname FROM pg_database WHERE datname LIKE 'rehearsal%'")
    engine = create_engine(database.replace("postgresql://", "postgresql+psycopg://"))

    def backwards() -> None:
        with rehearse(OPERATIONS, database) as rehearsal, engine.connect() as connection:
            assert len(connection.execute(listed).all()) == 1
            rehearsal.advance(seconds(-1))

    with pytest.raises(ValueError, match="forward"):
        backwards()
    with engine.connect() as connection:
        assert not connection.execute(listed).all()
        assert connection.execute(text("SELECT to_regclass('counterfoil.operation')")).scalar_one() is None
    engine.dispose()
