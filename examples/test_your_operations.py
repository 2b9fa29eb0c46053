"""Tests of operation types, to be copied: run them with pytest. The clients that the effects use must talk to test systems."""

from collections.abc import Iterator

import pytest
from sqlalchemy import text

from counterfoil import State, enqueue, minutes, seconds, status
from counterfoil.parts import postgres
from counterfoil.testing import Fault, assert_effect_once, check, rehearse
from examples.clients import crm
from examples.operations import OPERATIONS
from examples.send_mail import Mail, send_mail
from examples.sync_customer import Customer, sync_customer
from examples.upsert_projection import Stock, upsert_projection


@pytest.fixture(scope="session")
def database() -> Iterator[str]:
    """Any PostgreSQL that lets you create databases; this one is started for the tests, and ended."""
    with postgres() as server:
        yield server.url


def test_the_declarations_have_no_mistake() -> None:
    assert not check(OPERATIONS)


def test_a_customer_arrives_once_although_its_record_comes_twice(database: str) -> None:
    with rehearse(OPERATIONS, database) as rehearsal:
        it = enqueue(rehearsal.connection, sync_customer, Customer("451", 1, "a@b.c"))
        rehearsal.run(Fault.DELIVERED_TWICE)
        assert status(rehearsal.connection, it).state is State.SUCCEEDED
        assert_effect_once(rehearsal, it)
        row = crm.get("451")
        assert row is not None
        assert row.email == "a@b.c"


def test_a_crm_that_cannot_be_reached_is_tried_again_later(database: str) -> None:
    with rehearse(OPERATIONS, database) as rehearsal:
        it = enqueue(rehearsal.connection, sync_customer, Customer("452", 1, "a@b.c"))
        rehearsal.run(Fault.BEFORE_SEND)
        assert status(rehearsal.connection, it).state is State.RETRY_WAIT
        assert crm.get("452") is None
        rehearsal.advance(minutes(1))
        rehearsal.run()
        assert status(rehearsal.connection, it).state is State.SUCCEEDED


def test_what_the_crm_refuses_is_not_tried_again(database: str) -> None:
    with rehearse(OPERATIONS, database) as rehearsal:
        it = enqueue(rehearsal.connection, sync_customer, Customer("453", 1, "no address"))
        rehearsal.run()
        told = status(rehearsal.connection, it)
        assert (told.state, told.reason) == (State.QUARANTINED, "rejected")


def test_a_mail_whose_answer_is_lost_is_never_sent_twice(database: str) -> None:
    with rehearse(OPERATIONS, database) as rehearsal:
        it = enqueue(rehearsal.connection, send_mail, Mail("m-1", "a@b.c", "welcome"))
        rehearsal.run(Fault.ANSWER_LOST)
        rehearsal.advance(minutes(60))
        rehearsal.run()
        assert status(rehearsal.connection, it).state is State.AWAITING_CONFIRMATION
        assert len(rehearsal.calls(it)) == 1


def test_a_worker_that_is_killed_leaves_the_projection_written_once(database: str) -> None:
    with rehearse(OPERATIONS, database) as rehearsal:
        view = "CREATE TABLE stock_view (sku text PRIMARY KEY, version bigint NOT NULL, on_hand bigint NOT NULL)"
        rehearsal.connection.execute(text(view))
        it = enqueue(rehearsal.connection, upsert_projection, Stock("chair", 1, 5))
        rehearsal.run(Fault.KILLED_BEFORE_SETTLE)
        assert status(rehearsal.connection, it).state is State.RUNNING
        rehearsal.advance(seconds(61))
        rehearsal.run()
        assert status(rehearsal.connection, it).state is State.CONFIRMED
        assert rehearsal.connection.execute(text("SELECT on_hand FROM stock_view")).scalars().all() == [5]
