"""The sweepers on real PostgreSQL: whatever became of record or worker, an unfinished operation is found by its due time."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from itertools import product

import pytest
from sqlalchemy import text

from counterfoil import enqueue, enqueue_many
from counterfoil.core.outcomes import AttemptOutcome
from counterfoil.core.standing import Rules
from counterfoil.ledger import acknowledgements, due, sessions
from counterfoil.ledger.engine import in_transaction
from examples.upsert_projection import Stock
from tests.integration.test_admission import OUTSIDE, PROMISES_NOTHING
from tests.support.ledgers import Bed
from tests.support.stock import Hand, failed, rules_of, upsert_projection

SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)


def fill(ledger: Bed, count: int = 1) -> None:
    with ledger.engine.begin() as connection:
        enqueue_many(connection, upsert_projection, [Stock(f"s{n}", 1, n) for n in range(count)])


def sent(ledger: Bed, hand: Hand) -> int:
    return len(in_transaction(ledger.engine, lambda c: due.send_due(c, hand.writer, limit=500, resend_after=MINUTE)))


def ended(ledger: Bed, hand: Hand) -> int:
    by_type = {hand.rules.name: hand.rules}
    return len(in_transaction(ledger.engine, lambda c: due.end_leases(c, hand.writer, by_type, limit=500)))


def state_of(ledger: Bed) -> str:
    return str(ledger.one("SELECT state FROM counterfoil.state"))


def note(ledger: Bed, offset: int, kind: str = "command") -> None:
    """What the relay does with the newest command row: its note, in place of the row."""
    with ledger.engine.begin() as connection:
        connection.execute(
            text(
                "WITH gone AS (DELETE FROM counterfoil.outbox WHERE kind IN ('command', 'retry') RETURNING id)"
                " INSERT INTO counterfoil.published (number, outbox_id, kind, partition, record_offset, at)"
                " SELECT 1, id, :kind, 0, :offset, counterfoil.ledger_time() FROM gone"
            ),
            {"kind": kind, "offset": offset},
        )


def pass_by(ledger: Bed, hand: Hand, up_to: int, road: str = "commands") -> None:
    """The group commits."""
    with ledger.engine.begin() as connection:
        acknowledgements.note(connection, hand.session, {(f"{ledger.name}.upsert_projection.{road}", 0): up_to})


def hold(ledger: Bed) -> None:
    """What keeping the operation's record raw writes, and its due time come."""
    with ledger.engine.begin() as connection:
        connection.execute(
            text("UPDATE counterfoil.state SET sent_at = NULL, sent_id = NULL, due_at = counterfoil.ledger_time()")
        )
        connection.execute(
            text(
                "INSERT INTO counterfoil.raw_record (id, status, reason, type, number, topic, partition,"
                " record_offset, due_at, at)"
                " VALUES (gen_random_uuid(), 'held', 'no_capable_worker', 'upsert_projection', 1, 't', 0, 0,"
                " counterfoil.ledger_time() + interval '7 days', counterfoil.ledger_time())"
            )
        )


def test_a_queued_operation_is_sent_again_only_once_the_group_is_past_its_record(ledger: Bed) -> None:
    """L5: a record that was lost is replaced; one that merely waits in Kafka is not."""
    fill(ledger)
    hand = Hand(ledger.engine, lease=timedelta(days=1))
    assert sent(ledger, hand) == 0
    ledger.shift(2 * MINUTE)
    assert sent(ledger, hand) == 0, "it is not even published"
    note(ledger, 7)
    ledger.shift(10 * MINUTE)
    assert sent(ledger, hand) == 0, "it is published and nobody is past it"
    with ledger.engine.begin() as connection:
        acknowledgements.note(connection, hand.session, {(f"{ledger.name}.upsert_projection.commands", 0): 7})
    ledger.shift(60 * MINUTE)
    assert sent(ledger, hand) == 0, "the group stands before it"
    with ledger.engine.begin() as connection:
        acknowledgements.note(connection, hand.session, {(f"{ledger.name}.upsert_projection.commands", 0): 8})
    ledger.shift(timedelta(hours=6))
    assert sent(ledger, hand) == 1
    assert sent(ledger, hand) == 0
    assert ledger.rows("SELECT kind, revision, key FROM counterfoil.outbox") == [
        {"kind": "command", "revision": 1, "key": ledger.one("SELECT entity FROM counterfoil.operation").encode()}
    ]
    assert ledger.one("SELECT sequence FROM counterfoil.state") == 0, "it is no transition"
    assert ledger.one("SELECT count(*) FROM counterfoil.event WHERE kind = 'sent_again'") == 1


def test_a_retry_goes_over_its_own_topic_when_it_is_due_and_not_before(ledger: Bed) -> None:
    """L4: by the ledger's clock."""
    fill(ledger)
    hand = Hand(ledger.engine, OUTSIDE, lease=timedelta(days=1))
    hand.admit()
    hand.settle(1, failed(1, AttemptOutcome.TEMPORARY))
    assert sent(ledger, hand) == 0
    assert hand.admit().admitted == {}, "a copy of its record does not run it early"
    ledger.shift(timedelta(minutes=16))
    assert sent(ledger, hand) == 1
    assert ledger.one("SELECT count(*) FROM counterfoil.outbox WHERE kind = 'retry'") == 1
    assert hand.admit().admitted[1].attempt == 2


def test_a_held_record_waits_for_its_deadline(ledger: Bed) -> None:
    fill(ledger)
    hand = Hand(ledger.engine, lease=timedelta(days=1))
    hold(ledger)
    assert sent(ledger, hand) == 0
    assert ledger.one("SELECT due_at > counterfoil.ledger_time() + interval '6 days' FROM counterfoil.state") is True


@pytest.mark.parametrize(
    ("rules", "becomes"),
    [(rules_of(), "retry_wait"), (OUTSIDE, "awaiting_confirmation"), (PROMISES_NOTHING, "awaiting_confirmation")],
    ids=["in the ledger", "keyed", "no promise"],
)
def test_an_attempt_of_a_dead_worker_surfaces_within_its_lease(ledger: Bed, rules: Rules, becomes: str) -> None:
    """L5, D59: never queued again blindly; in the ledger no commit means no effect."""
    fill(ledger)
    hand = Hand(ledger.engine, rules, lease=2 * SECOND)
    hand.admit()
    assert ended(ledger, hand) == 0
    ledger.shift(3 * SECOND)
    assert ended(ledger, hand) == 1
    assert ended(ledger, hand) == 0
    assert state_of(ledger) == becomes


def test_a_live_owner_is_never_overtaken(ledger: Bed) -> None:
    """D59: while the session's heart beats, until the attempt's own run time of 20 s is over."""
    fill(ledger)
    hand = Hand(ledger.engine, OUTSIDE, lease=15 * SECOND)
    hand.admit()
    for elapsed in (3, 6, 9, 12):
        ledger.shift(elapsed * SECOND)
        with ledger.engine.begin() as connection:
            assert sessions.heartbeat(connection, hand.session, 15 * SECOND) is not None
        assert ended(ledger, hand) == 0
    ledger.shift(21 * SECOND)
    assert ended(ledger, hand) == 1
    assert state_of(ledger) == "awaiting_confirmation"
    assert ledger.one("SELECT reason FROM counterfoil.state") == "attempt_time_over"


def test_a_closed_session_gives_its_attempts_up_at_once(ledger: Bed) -> None:
    fill(ledger)
    hand = Hand(ledger.engine, lease=timedelta(hours=1))
    hand.admit()
    with ledger.engine.begin() as connection:
        sessions.close_session(connection, hand.session)
        connection.execute(text("UPDATE counterfoil.state SET due_at = counterfoil.ledger_time()"))
    assert ended(ledger, hand) == 1


@pytest.mark.parametrize(
    ("change", "becomes"),
    [
        ({}, "retry_wait"),
        ({"money": True}, "awaiting_confirmation"),
        ({"keyed": False}, "awaiting_confirmation"),
        ({"has_probe": True}, "awaiting_confirmation"),
        ({"horizon": timedelta(seconds=30)}, "awaiting_confirmation"),
    ],
    ids=["keyed, no probe", "money", "not keyed", "probed", "past the horizon"],
)
def test_what_nobody_can_probe_is_repeated_under_its_key_only_where_that_is_harmless(
    ledger: Bed, change: dict[str, object], becomes: str
) -> None:
    """S10."""
    fill(ledger)
    rules = replace(OUTSIDE, **{"has_probe": False, **change})  # type: ignore[arg-type]  # each is a field of its own type
    hand = Hand(ledger.engine, rules, lease=timedelta(days=1))
    hand.admit()
    hand.settle(1, failed(1, AttemptOutcome.UNCERTAIN, "timeout"))
    ledger.shift(timedelta(minutes=20))
    again = {"limit": 500, "look_again": MINUTE}
    in_transaction(ledger.engine, lambda c: due.resend_unprobed(c, hand.writer, {rules.name: rules}, **again))  # type: ignore[arg-type]
    assert state_of(ledger) == becomes


WAITS = ("past", "future")
OWNERS = ("none", "dead", "live")


@pytest.mark.parametrize(
    ("state", "when", "owner"),
    [
        each
        for each in product(("queued", "running", "retry_wait", "awaiting_confirmation"), WAITS, OWNERS)
        if (each[0] == "running") == (each[2] != "none")
    ],
)
def test_every_unfinished_operation_is_found_by_exactly_one_sweeper(ledger: Bed, state: str, when: str, owner: str) -> None:
    """D14, L5: and the table refuses a row without a due time, so that there is no other half-way state."""
    fill(ledger)
    hand = Hand(ledger.engine, replace(OUTSIDE, has_probe=False), lease=timedelta(hours=1))
    with ledger.engine.begin() as connection:
        dead = sessions.open_session(connection, "worker", "dead", timedelta(0))
        session = {"none": None, "dead": dead, "live": hand.session}[owner]
        connection.execute(
            text(
                "UPDATE counterfoil.state SET state = :state, session = :session, sent_at = NULL, sent_id = NULL, attempt = 1,"
                " outcome = :outcome,"
                " admitted_at = counterfoil.ledger_time(), doubtful_since = CAST(:doubt AS timestamptz),"
                " doubtful_revision = CAST(:doubt_key AS int), doubtful_generation = CAST(:doubt_key AS int) - 1,"
                " attempt_until = counterfoil.ledger_time() + interval '1 hour',"
                " due_at = counterfoil.ledger_time() + CAST(:wait AS interval)"
            ),
            {
                "state": state,
                "session": session,
                "outcome": "open" if state == "running" else "uncertain" if state == "awaiting_confirmation" else None,
                "doubt": "now" if state == "awaiting_confirmation" else None,
                "doubt_key": 1 if state == "awaiting_confirmation" else None,
                "wait": timedelta(0) if when == "past" else timedelta(hours=1),
            },
        )
    rules = {hand.rules.name: hand.rules}
    found = [
        sent(ledger, hand),
        ended(ledger, hand),
        len(in_transaction(ledger.engine, lambda c: due.resend_unprobed(c, hand.writer, rules, limit=9, look_again=MINUTE))),
    ]
    expected = 1 if when == "past" and owner != "live" else 0
    assert sum(found) == expected
    assert ledger.one("SELECT due_at IS NOT NULL FROM counterfoil.state") is True


@pytest.mark.parametrize(
    "change",
    ["due_at = NULL", "closed_at = counterfoil.ledger_time()", "state = 'running'", "state = 'confirmed'", "state = 'half_way'"],
)
def test_a_half_way_row_cannot_be_written(ledger: Bed, change: str) -> None:
    """D14, S3: the table's own constraints repeat the rules."""
    fill(ledger)
    with pytest.raises(Exception, match="CheckViolation"), ledger.engine.begin() as connection:
        connection.execute(text(f"UPDATE counterfoil.state SET {change}"))


def test_a_delayed_operation_is_sent_when_its_time_comes(ledger: Bed) -> None:
    hand = Hand(ledger.engine, lease=timedelta(days=1))
    with ledger.engine.begin() as connection:
        now = connection.execute(text("SELECT counterfoil.ledger_time()")).scalar_one()
        enqueue(connection, upsert_projection, Stock("a", 1, 1), not_before=now + timedelta(hours=1))
    assert hand.admit().admitted == {}, "its first record comes too early"
    note(ledger, 0)
    with ledger.engine.begin() as connection:
        acknowledgements.note(connection, hand.session, {(f"{ledger.name}.upsert_projection.commands", 0): 1})
    ledger.shift(timedelta(hours=1, seconds=1))
    assert sent(ledger, hand) == 1
    assert 1 in hand.admit().admitted


def test_a_clock_that_steps_back_between_a_resend_and_its_note_strands_nothing(ledger: Bed) -> None:
    """L4, L5: a failover to a host that is behind; the worker finished the record as not due."""
    fill(ledger)
    hand = Hand(ledger.engine, OUTSIDE, lease=timedelta(days=90))
    hand.admit()
    hand.settle(1, failed(1, AttemptOutcome.TEMPORARY))
    base = timedelta(hours=1)
    ledger.shift(base)
    assert sent(ledger, hand) == 1
    ledger.shift(base - timedelta(minutes=5))
    note(ledger, 0, "retry")
    pass_by(ledger, hand, 1, "retry")
    ledger.shift(base + timedelta(minutes=2))
    assert sent(ledger, hand) == 1


def test_a_delay_longer_than_notes_are_kept_ends_in_a_send(ledger: Bed) -> None:
    """L1, L4: by then nobody can say any more where its first record went."""
    hand = Hand(ledger.engine, lease=timedelta(days=365))
    with ledger.engine.begin() as connection:
        now = connection.execute(text("SELECT counterfoil.ledger_time()")).scalar_one()
        enqueue(connection, upsert_projection, Stock("a", 1, 1), not_before=now + timedelta(days=45))
    note(ledger, 7)
    assert hand.admit().left, "it is not due"
    pass_by(ledger, hand, 8)
    ledger.shift(timedelta(days=45, minutes=1))
    with ledger.engine.begin() as connection:
        connection.execute(text("DELETE FROM counterfoil.published"))
    assert sent(ledger, hand) == 1


def test_a_record_that_is_lost_with_its_topic_is_replaced_within_a_day(ledger: Bed) -> None:
    """L5: the topic was made again, and the group's offsets will not reach the old one for long."""
    fill(ledger)
    hand = Hand(ledger.engine, lease=timedelta(days=365))
    note(ledger, 500)
    pass_by(ledger, hand, 5)
    ledger.shift(timedelta(hours=2))
    assert sent(ledger, hand) == 0
    ledger.shift(timedelta(days=1, hours=3))
    assert sent(ledger, hand) == 1


def test_a_command_row_that_was_moved_aside_is_written_again(ledger: Bed) -> None:
    """L5: it is neither in the outbox nor noted."""
    fill(ledger)
    hand = Hand(ledger.engine, lease=timedelta(days=1))
    with ledger.engine.begin() as connection:
        connection.execute(text("DELETE FROM counterfoil.outbox"))
    ledger.shift(2 * MINUTE)
    assert sent(ledger, hand) == 1
