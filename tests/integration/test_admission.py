"""Admitting and settling on real PostgreSQL: who may run, what a stale attempt can still do, and what the chain says."""

from __future__ import annotations

import threading
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import Connection, text

from counterfoil import enqueue, enqueue_many
from counterfoil.core.chain import admitted_content, event_content, head_after
from counterfoil.core.decisions import Kept, Move
from counterfoil.core.outcomes import AttemptOutcome
from counterfoil.core.standing import Rules
from counterfoil.core.states import State
from counterfoil.ledger import sessions, settlement
from counterfoil.ledger.admission import Candidate, LeaseOver, Why
from counterfoil.ledger.engine import in_transaction
from counterfoil.schemas.envelope import DeadLetter, dead_letter_headers, parse_dead_letter, source
from examples.upsert_projection import Stock
from tests.support.ledgers import Bed
from tests.support.stock import Hand, done, failed, rules_of, upsert_projection

SECOND = timedelta(seconds=1)
#: Outside the ledger, probed, at a sink that keeps our key for an hour.
OUTSIDE = replace(
    rules_of(),
    in_ledger=False,
    receipt_confirms=False,
    has_probe=True,
    keyed=True,
    horizon=timedelta(hours=1),
    request_life=30 * SECOND,
    read_lag=5 * SECOND,
    timeout=20 * SECOND,
)
PROMISES_NOTHING = replace(OUTSIDE, keyed=False, horizon=None)


def fill(ledger: Bed, count: int = 1) -> None:
    with ledger.engine.begin() as connection:
        enqueue_many(connection, upsert_projection, [Stock(f"s{n}", 1, n) for n in range(count)])


def state_of(ledger: Bed, number: int = 1) -> str:
    return str(ledger.one("SELECT state FROM counterfoil.state WHERE number = :number", number=number))


def test_the_admitted_event_is_committed_before_the_effect_may_run(ledger: Bed) -> None:
    """S8: and at most one attempt is open."""
    fill(ledger)
    hand, other = Hand(ledger.engine), Hand(ledger.engine)
    admitted = hand.admit().admitted
    assert admitted[1].attempt == 1
    assert ledger.one("SELECT count(*) FROM counterfoil.event WHERE kind = 'admitted'") == 1
    assert other.admit().left == {1: Why.COMPLETED}
    assert ledger.one("SELECT count(*) FROM counterfoil.event WHERE kind = 'admitted'") == 1


def test_two_workers_at_once_admit_each_operation_once(ledger: Bed) -> None:
    """D58, S8."""
    fill(ledger, 500)
    hands = [Hand(ledger.engine) for _ in range(4)]
    candidates = hands[0].candidates()
    start = threading.Barrier(4)
    won: list[set[int]] = []

    def run(hand: Hand, mine: list[Candidate]) -> None:
        start.wait(15)
        won.append(set(hand.admit(*mine).admitted))

    threads = [threading.Thread(target=run, args=(h, candidates[:: (-1) ** n])) for n, h in enumerate(hands)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sum(len(each) for each in won) == 500
    assert set().union(*won) == {each.number for each in candidates}


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"revision": 2}, Why.REVISION),
        ({"value_hash": b"\x00" * 32}, Why.DIGEST),
        ({"number": 4711}, Why.UNKNOWN),
    ],
)
def test_a_forged_record_runs_nothing(ledger: Bed, change: dict[str, Any], why: Why) -> None:
    """S5, S8: another revision, other bytes, an operation that the ledger does not know."""
    fill(ledger)
    hand = Hand(ledger.engine)
    candidate = hand.candidates()[0]._replace(**change)
    assert hand.admit(candidate).left == {candidate.number: why}
    assert state_of(ledger) == "queued"


def test_a_record_on_another_types_topic_runs_nothing(ledger: Bed) -> None:
    """S8."""
    fill(ledger)
    assert Hand(ledger.engine, replace(rules_of(), name="other")).admit().left == {1: Why.DIGEST}


def test_a_copy_and_a_redelivery_are_told_apart_and_change_nothing(ledger: Bed) -> None:
    """S3, D92: a finished operation stays finished, whatever record of it comes."""
    fill(ledger)
    hand = Hand(ledger.engine)
    candidate = hand.candidates()[0]
    attempt = hand.admit().admitted[1].attempt
    hand.settle(1, done(attempt))
    assert hand.admit(candidate).left == {1: Why.COMPLETED}
    assert hand.admit(candidate._replace(offset=99)).left == {1: Why.COPY}
    kinds = [row["kind"] for row in ledger.rows("SELECT kind FROM counterfoil.event ORDER BY ordinal")]
    assert kinds == ["accepted", "admitted", "result_saved", "redelivered", "copied"]
    told = ledger.rows("SELECT reason FROM counterfoil.event WHERE kind IN ('redelivered', 'copied') ORDER BY ordinal")
    assert [row["reason"] for row in told] == ["redelivered", "copied"]
    assert ledger.rows("SELECT state, sequence, attempt FROM counterfoil.state") == [
        {"state": "confirmed", "sequence": 2, "attempt": 1}
    ]


def test_a_session_whose_lease_is_over_admits_nothing_and_is_not_revived(ledger: Bed) -> None:
    """S9, D59: lease in seconds and milliseconds alike."""
    fill(ledger)
    hand = Hand(ledger.engine, lease=timedelta(milliseconds=1500))
    ledger.shift(timedelta(milliseconds=1400))
    with ledger.engine.begin() as connection:
        assert sessions.heartbeat(connection, hand.session, timedelta(milliseconds=1500)) is not None
    ledger.shift(timedelta(seconds=4))
    with pytest.raises(LeaseOver):
        hand.admit()
    with ledger.engine.begin() as connection:
        assert sessions.heartbeat(connection, hand.session, timedelta(hours=1)) is None
    assert state_of(ledger) == "queued"


def test_a_stale_attempt_changes_nothing_and_its_receipt_is_kept(ledger: Bed) -> None:
    """S9: asserted on the ledger, since a keyed sink would hide it."""
    fill(ledger)
    hand = Hand(ledger.engine, OUTSIDE)
    hand.admit()
    hand.settle(1, failed(1, AttemptOutcome.NOT_SENT, "not_sent_shutdown"))
    assert state_of(ledger) == "retry_wait"
    hand.admit()
    before = ledger.rows("SELECT state, sequence, attempt, tries_left FROM counterfoil.state")
    assert isinstance(hand.settle(1, done(1, "late")), Kept)
    assert isinstance(hand.settle(1, failed(1, AttemptOutcome.PERMANENT, "rejected")), Kept)
    assert ledger.rows("SELECT state, sequence, attempt, tries_left FROM counterfoil.state") == before
    assert ledger.one("SELECT detail ->> 'remote_id' FROM counterfoil.event WHERE kind = 'receipt_kept'") == "late"


def test_a_decision_on_an_older_sequence_is_void(ledger: Bed) -> None:
    """S9, T6."""
    fill(ledger)
    hand = Hand(ledger.engine, OUTSIDE)
    hand.admit()
    with ledger.engine.begin() as connection:
        stale = settlement.lock(connection, [1])
    hand.settle(1, done(1))

    def late(connection: Connection) -> None:
        settlement.save(connection, hand.writer, hand.rules, stale, [settlement.Result(1, done(1, "second"))])

    in_transaction(ledger.engine, late)
    assert ledger.rows("SELECT state, sequence, remote_id FROM counterfoil.state") == [
        {"state": "succeeded", "sequence": 2, "remote_id": "r-1"}
    ]


@pytest.mark.parametrize(
    ("rules", "shift", "again"),
    [
        (OUTSIDE, timedelta(0), True),
        (OUTSIDE, timedelta(minutes=58), True),
        (OUTSIDE, timedelta(minutes=59, seconds=30), False),
        (PROMISES_NOTHING, timedelta(0), False),
        (replace(PROMISES_NOTHING, version_guard=True), timedelta(days=9), True),
    ],
    ids=["inside", "just inside", "inside without its margin", "no promise", "version guard"],
)
def test_an_earlier_doubtful_attempt_is_not_sent_again_unless_that_is_harmless(
    ledger: Bed, rules: Rules, shift: timedelta, again: bool
) -> None:
    """S10, T7: checked in the statement that admits."""
    fill(ledger)
    hand = Hand(ledger.engine, rules, lease=timedelta(days=30))
    hand.admit()
    hand.settle(1, failed(1, AttemptOutcome.UNCERTAIN, "timeout"))
    with ledger.engine.begin() as connection:  # what a verdict "missing" does
        connection.execute(
            text("UPDATE counterfoil.state SET state = 'retry_wait', outcome = 'presumed_absent', sequence = sequence + 1")
        )
    ledger.shift(shift)
    admission = hand.admit()
    assert (1 in admission.admitted) is again
    if not again:
        assert admission.left == {1: Why.MOVED}
        assert state_of(ledger) == "awaiting_confirmation"


def test_tries_are_bounded_and_the_last_failure_is_a_dead_letter(ledger: Bed) -> None:
    """S12, S22, D64: exactly max_tries calls, then one cause and one dead letter."""
    fill(ledger)
    hand = Hand(ledger.engine, replace(OUTSIDE, max_tries=3))
    with ledger.engine.begin() as connection:
        connection.execute(text("UPDATE counterfoil.state SET tries_left = 3"))
    for attempt in (1, 2, 3):
        with ledger.engine.begin() as connection:
            connection.execute(text("UPDATE counterfoil.state SET not_before = NULL"))
        assert hand.admit().admitted[1].attempt == attempt
        moved = hand.settle(1, failed(attempt, AttemptOutcome.TEMPORARY))
        assert isinstance(moved, Move)
    assert state_of(ledger) == "quarantined"
    assert hand.admit().left == {1: Why.COMPLETED}
    letters = ledger.rows("SELECT key, value, headers, operation_id FROM counterfoil.outbox WHERE kind = 'dead_letter'")
    assert len(letters) == 1
    letter: DeadLetter = parse_dead_letter(dead_letter_headers(source(ledger.name), letters[0]["headers"], 1))
    assert letter.reason == "tries_used_up"
    assert letter.topic == f"{ledger.name}.upsert_projection.commands"
    assert letter.attempt == 3
    assert bytes(letters[0]["key"]).decode() == str(letters[0]["operation_id"])
    assert letters[0]["value"] == ledger.one("SELECT value FROM counterfoil.payload")


def test_not_sent_costs_no_try(ledger: Bed) -> None:
    """S22."""
    fill(ledger)
    hand = Hand(ledger.engine, OUTSIDE)
    before = ledger.one("SELECT tries_left FROM counterfoil.state")
    hand.admit()
    hand.settle(1, failed(1, AttemptOutcome.NOT_SENT, "not_sent_shutdown"))
    assert ledger.one("SELECT tries_left FROM counterfoil.state") == before


def test_an_effect_in_the_ledger_is_there_exactly_where_its_outcome_is(ledger: Bed) -> None:
    """S1: a roll-back takes both; a stale attempt finds that it no longer holds the operation."""
    fill(ledger)
    hand = Hand(ledger.engine)
    hand.admit()
    with ledger.engine.begin() as connection:
        locked = settlement.lock(connection, [1])
        assert settlement.holds(locked.standings[1], hand.session, 1)
        assert not settlement.holds(locked.standings[1], hand.session, 2)
        assert not settlement.holds(locked.standings[1], hand.session + 1, 1)


def test_the_chain_of_every_operation_verifies(ledger: Bed) -> None:
    """S15: each head covers the one before, and a changed event shows."""
    fill(ledger, 3)
    hand = Hand(ledger.engine)
    hand.admit()
    for number in (1, 2, 3):
        hand.settle(number, done(1))
    hand.admit()
    secret = hand.writer.ledger.secret
    for number in (1, 2, 3):
        head = b""
        query = "SELECT * FROM counterfoil.event WHERE number = :number ORDER BY ordinal"
        events = ledger.rows(query, number=number)
        assert [event["ordinal"] for event in events] == [1, 2, 3, 4]
        for event in events:
            content = bytes(event["content"])
            head = head_after(head, number, event["sequence"], event["kind"], content)
            assert bytes(event["chain"]) == head
        assert head == bytes(ledger.one("SELECT chain FROM counterfoil.state WHERE number = :number", number=number))
        row = events[1]
        detail = f'{{"offset":{number},"partition":0,"road":"commands","session":{hand.session}}}'.encode()
        assert bytes(row["content"]) == admitted_content(event_content(secret, "admitted", "admitted", detail), 1)


def test_every_reported_transition_has_its_state_record_and_no_other(ledger: Bed) -> None:
    """S16: every one except into queued or running."""
    with ledger.engine.begin() as connection:
        enqueue(connection, upsert_projection, Stock("a", 1, 1))
    hand = Hand(ledger.engine, OUTSIDE)
    hand.admit()
    hand.settle(1, failed(1, AttemptOutcome.NOT_SENT, "not_sent_shutdown"))
    hand.admit()
    hand.settle(1, done(2))
    rows = ledger.rows("SELECT kind, key, operation_id FROM counterfoil.outbox WHERE kind = 'state' ORDER BY id")
    assert len(rows) == 2
    assert {bytes(row["key"]).decode() for row in rows} == {str(rows[0]["operation_id"])}
    assert state_of(ledger) == State.SUCCEEDED.value
