"""Strict order on real PostgreSQL: numbers, the head, who moves it, and who is told."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from sqlalchemy import text

from counterfoil import cancel, enqueue
from counterfoil.core.outcomes import AttemptOutcome
from counterfoil.ledger.admission import Why
from examples.upsert_projection import Stock
from tests.support.ledgers import Bed
from tests.support.lines import STRICT, Line
from tests.support.stock import done, failed


def test_numbers_are_taken_in_the_callers_order_and_only_by_new_operations(ledger: Bed) -> None:
    """S7: whatever the order of the ids; the same content again takes no number, a rolled-back one leaves no hole."""
    line = Line(ledger)
    first = line.enqueue(("a", 3), ("a", 1), ("b", 9), ("a", 2))
    line.enqueue(("a", 1), ("a", 5), ("a", 3))
    with ledger.engine.connect() as connection:
        enqueue(connection, line.type, Stock("a", 77, 1))
        connection.rollback()
    line.enqueue(("a", 4))
    query = """SELECT o.entity, s.position FROM counterfoil.state s JOIN counterfoil.operation o USING (number)
        ORDER BY o.entity, s.position"""
    rows = ledger.rows(query)
    assert [(row["entity"], row["position"]) for row in rows] == [("a", n) for n in range(1, 6)] + [("b", 1)]
    assert [line.bed.one("SELECT position FROM counterfoil.state WHERE number = :n", n=n) for n in first] == [1, 2, 1, 3]


def test_only_the_head_runs_and_whoever_ends_it_sends_the_next(ledger: Bed) -> None:
    """S7: the others' records are completed; the next one is in the outbox when the head's answer is committed."""
    line = Line(ledger)
    numbers = line.enqueue(*(("a", n) for n in range(1, 4)))
    line.sent()
    admission = line.admit(*numbers)
    assert set(admission.admitted) == {numbers[0]}
    assert admission.admitted[numbers[0]].position == 1
    assert admission.left == {numbers[1]: Why.WAITS, numbers[2]: Why.WAITS}
    line.hand.settle(numbers[0], done(1))
    assert line.sent() == [numbers[1]], "and not the third"
    assert line.head() == 2
    admission = line.admit(*numbers)
    assert set(admission.admitted) == {numbers[1]}
    assert admission.left[numbers[0]] is Why.COMPLETED
    line.hand.settle(numbers[1], done(1))
    assert line.sent() == [numbers[2]]
    reasons = ledger.rows("SELECT number, reason FROM counterfoil.event WHERE kind = 'sent_again' ORDER BY at")
    assert reasons == [{"number": n, "reason": "turn_came"} for n in numbers[1:]]


def test_a_next_one_whose_record_is_under_way_is_not_sent_twice(ledger: Bed) -> None:
    """It was not told to wait, so its own record will come."""
    line = Line(ledger)
    first, second = line.enqueue(("a", 1), ("a", 2))
    line.sent()
    line.admit(first)
    line.hand.settle(first, done(1))
    assert line.sent() == []
    assert set(line.admit(second).admitted) == {second}


@pytest.mark.parametrize("outcome", [AttemptOutcome.TEMPORARY, AttemptOutcome.PERMANENT, AttemptOutcome.UNCERTAIN])
def test_a_head_that_did_not_succeed_stays_the_head(ledger: Bed, outcome: AttemptOutcome) -> None:
    """S7: in its backoff, quarantined, in doubt: the next one waits, and another entity does not (L3)."""
    line = Line(ledger)
    first, second, other = line.enqueue(("a", 1), ("a", 2), ("b", 1))
    line.sent()
    line.admit(first)
    line.hand.settle(first, failed(1, outcome))
    assert line.sent() == []
    admission = line.admit(second, other)
    assert admission.left == {second: Why.WAITS}
    assert set(admission.admitted) == {other}
    assert line.head() == 1


def test_a_cancelled_head_is_passed_and_a_cancelled_one_behind_it_is_skipped(ledger: Bed) -> None:
    """Whoever makes an operation final moves the head, in the same transaction: here callers."""
    line = Line(ledger)
    numbers = line.enqueue(*(("a", n) for n in range(1, 6)))
    line.sent()
    line.admit(*numbers)
    ids = {row["number"]: row["operation_id"] for row in ledger.rows("SELECT number, operation_id FROM counterfoil.operation")}
    with ledger.engine.begin() as connection:
        cancel(connection, ids[numbers[2]], reason="the middle one")
    assert line.sent() == []
    assert line.head() == 1
    line.hand.settle(numbers[0], failed(1, AttemptOutcome.NOT_SENT, "not_sent_shutdown"))
    assert line.sent() == []
    with ledger.engine.begin() as connection:
        cancel(connection, ids[numbers[0]], reason="the head")
        assert line.head() == 1, "not before the caller's commit"
    assert line.sent() == [numbers[1]]
    line.admit(numbers[1])
    line.hand.settle(numbers[1], done(1))
    assert line.sent() == [numbers[3]]
    assert line.head() == 4
    assert line.states(numbers) == ["not_applicable", "succeeded", "not_applicable", "queued", "queued"]


def test_what_the_head_has_passed_is_never_sent_again(ledger: Bed) -> None:
    """T15: v1 succeeded, v2 admitted; whoever requeues v1 is refused by the statement that admits. It is looked up instead."""
    line = Line(ledger)
    first, second = line.enqueue(("a", 1), ("a", 2))
    line.admit(first)
    line.hand.settle(first, done(1))
    line.admit(second)
    with ledger.engine.begin() as connection:
        connection.execute(
            text("UPDATE counterfoil.state SET state = 'retry_wait', sequence = sequence + 1 WHERE number = :n"), {"n": first}
        )
    admission = line.admit(first)
    assert admission.left == {first: Why.MOVED}
    assert line.states([first]) == ["awaiting_confirmation"]
    assert ledger.one("SELECT reason FROM counterfoil.state WHERE number = :n", n=first) == "later_sent"


def test_the_next_one_waits_for_a_request_that_may_still_land_after_an_accepted_risk(ledger: Bed) -> None:
    """T13, for Strict: doubt about an earlier request is not over with the answer of the latest one."""
    rules = replace(STRICT, keyed=False, horizon=None)
    line = Line(ledger, rules)
    first, second = line.enqueue(("a", 1), ("a", 2))
    line.sent()
    line.admit(first)
    line.hand.settle(first, failed(1, AttemptOutcome.UNCERTAIN, "timeout"))
    requeue_with_risk(ledger, first)
    assert set(line.admit(first, second).admitted) == {first}
    line.hand.settle(first, done(2))
    assert line.sent() == [second]
    assert line.admit(second).left == {second: Why.WAITS}
    assert line.sweep() == 0, "not before that wait is over"
    ledger.shift(timedelta(seconds=65))  # run time, send grace, request life, read lag
    assert line.sweep() == 1
    assert set(line.admit(second).admitted) == {second}


def requeue_with_risk(ledger: Bed, number: int) -> None:
    """What a person's act writes."""
    with ledger.engine.begin() as connection:
        connection.execute(
            text(
                "UPDATE counterfoil.state SET state = 'retry_wait', outcome = 'presumed_absent', unresolved = false,"
                " accepted_risk = true, sequence = sequence + 1 WHERE number = :number"
            ),
            {"number": number},
        )


def test_those_that_wait_are_not_sent_again_and_again_and_one_behind_something_lost_is_found(ledger: Bed) -> None:
    """L5: told to wait, an operation is looked at once a day; sent only when nothing is before it any more."""
    line = Line(ledger)
    numbers = line.enqueue(*(("a", n) for n in range(1, 4)))
    line.sent()
    line.admit(*numbers)
    for day in range(1, 4):
        ledger.shift(timedelta(days=day, hours=day))
        assert line.sweep() == 0
        assert ledger.one("SELECT count(*) FROM counterfoil.state WHERE due_at < counterfoil.ledger_time()") <= 1
    with ledger.engine.begin() as connection:  # nobody was told, whatever the reason
        connection.execute(
            text("UPDATE counterfoil.state SET state = 'succeeded', session = NULL WHERE number = :n"), {"n": numbers[0]}
        )
    ledger.shift(timedelta(days=5))
    assert line.sweep() == 1
    assert line.sent() == [numbers[1]]


def test_a_lost_record_of_one_that_waits_is_replaced(ledger: Bed) -> None:
    """L5: it was never told to wait, since its record never came: it is followed as any other."""
    line = Line(ledger)
    first, second = line.enqueue(("a", 1), ("a", 2))
    line.sent()  # both are gone, noted nowhere
    line.admit(first)
    line.hand.settle(first, done(1))
    ledger.shift(timedelta(seconds=70))
    assert line.sweep() == 1
    assert line.sent() == [second]
