"""Held records on real PostgreSQL: let go once when a worker can do them, given up at their deadline, found by indexes."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from sqlalchemy import text

from counterfoil import enqueue_many
from counterfoil.core.outcomes import AttemptOutcome
from counterfoil.core.reasons import Reason
from counterfoil.ledger import due, releasing, sessions
from counterfoil.ledger.engine import in_transaction
from counterfoil.ledger.names import ledger_of
from counterfoil.ledger.raw_records import Raw, cause_of, keep
from counterfoil.reporting import raw_words
from counterfoil.schemas.envelope import Command, command_headers, source
from counterfoil.streams.held import taking_up
from counterfoil.streams.held.taking_up import Rounds, TakenUp
from examples.upsert_projection import Stock
from tests.integration.test_admission import OUTSIDE
from tests.support.ledgers import Bed
from tests.support.stock import Hand, failed, upsert_projection

DAY, MINUTE, WEEK = timedelta(days=1), timedelta(minutes=1), timedelta(days=7)
TYPE = upsert_projection.name


def framed(schema_id: int) -> bytes:
    return b"\x00" + schema_id.to_bytes(4, "big") + b"rest"


def fill(ledger: Bed, count: int = 1) -> None:
    """Operations whose command records have come to a worker that could not read them."""
    with ledger.engine.begin() as connection:
        enqueue_many(connection, upsert_projection, [Stock(f"s{n}", 1, n) for n in range(count)])
        connection.execute(text("DELETE FROM counterfoil.outbox"))
        connection.execute(
            text("UPDATE counterfoil.state SET sent_id = NULL, due_at = counterfoil.ledger_time() + interval '7 days'")
        )


def hold(ledger: Bed, *numbers: int | None, schema_id: int = 9, reason: Reason = Reason.SCHEMA_NOT_READ) -> list[UUID]:
    """Their records, kept as the worker keeps them; answers the causes."""

    def unit(connection: Any) -> list[UUID]:
        of = ledger_of(connection)
        raws = [
            Raw(f"{of.name}.{TYPE}.commands", 0, place, 1, b"k", framed(schema_id), [], TYPE, number, reason)
            for place, number in enumerate(numbers)
        ]
        keep(connection, of, raws, held=True, due_in=WEEK, words=raw_words)
        return [cause_of(of, raw) for raw in raws]

    return in_transaction(ledger.engine, unit)


def strangers(ledger: Bed, *claims: tuple[UUID, bytes], reason: Reason = Reason.UNKNOWN_OPERATION_RECORD) -> list[UUID]:
    """Records without an operation, held; of each the operation_id that its headers claim, and its value."""

    def unit(connection: Any) -> list[UUID]:
        of = ledger_of(connection)
        raws = [
            Raw(
                f"{of.name}.{TYPE}.commands",
                1,
                place,
                1,
                b"k",
                value,
                command_headers(source(of.name), Command(900 + place, claimed, TYPE, 1, "key", 1)),
                TYPE,
                None,
                reason,
            )
            for place, (claimed, value) in enumerate(claims)
        ]
        keep(connection, of, raws, held=True, due_in=WEEK, words=raw_words)
        return [cause_of(of, raw) for raw in raws]

    return in_transaction(ledger.engine, unit)


def taken_up(ledger: Bed, rounds: Rounds | None = None) -> TakenUp:
    return in_transaction(ledger.engine, (rounds or Rounds(WEEK)).look)


def registered(ledger: Bed, schema_id: int | None, lease: timedelta = DAY) -> int:
    """A live worker that reads this schema, or knows another type only."""
    capable = {"another": 1} if schema_id is None else {TYPE: schema_id}
    return in_transaction(ledger.engine, lambda c: sessions.open_session(c, "worker", "w", lease, capable))


def let_go(ledger: Bed, limit: int = 500) -> int:
    return len(in_transaction(ledger.engine, lambda c: releasing.release_capable(c, limit=limit)))


def ended(ledger: Bed, hand: Hand, known: Sequence[Any] | None = None) -> int:
    rules = {one.name: one for one in ([hand.rules] if known is None else known)}
    return in_transaction(ledger.engine, lambda c: releasing.end_holds(c, hand.writer, rules, limit=500))[0]


def sent(ledger: Bed, hand: Hand) -> int:
    return len(in_transaction(ledger.engine, lambda c: due.send_due(c, hand.writer, limit=500, resend_after=MINUTE)))


def statuses(ledger: Bed) -> list[str]:
    return [row["status"] for row in ledger.rows("SELECT status FROM counterfoil.raw_record ORDER BY record_offset")]


def test_a_record_is_let_go_when_a_worker_that_reads_it_registers_and_its_operation_sends_it_once(ledger: Bed) -> None:
    """S6, L5: the operation's own bytes, through the outbox; until then it waits."""
    fill(ledger)
    hand = Hand(ledger.engine, lease=DAY)
    hold(ledger, 1)
    registered(ledger, 8)
    registered(ledger, None)
    assert let_go(ledger) == 0, "no live worker reads it"
    assert sent(ledger, hand) == 0
    registered(ledger, 9)
    assert let_go(ledger) == 1
    assert statuses(ledger) == ["released"]
    assert (sent(ledger, hand), sent(ledger, hand), let_go(ledger)) == (1, 0, 0)
    assert ledger.one("SELECT count(*) FROM counterfoil.outbox WHERE kind = 'command'") == 1


def test_a_worker_that_is_gone_counts_for_nothing(ledger: Bed) -> None:
    fill(ledger)
    hold(ledger, 1)
    registered(ledger, 9, lease=timedelta(0))
    stopped = registered(ledger, 9)
    in_transaction(ledger.engine, lambda c: sessions.close_session(c, stopped))
    assert let_go(ledger) == 0


def test_beside_a_worker_that_cannot_do_it_a_record_is_let_go_once_and_again_when_that_one_is_gone(ledger: Bed) -> None:
    """Its partition may be the older worker's, which holds it again: no loop between the two."""
    old = registered(ledger, 8)
    fill(ledger)
    hold(ledger, 1)
    registered(ledger, 9)
    assert let_go(ledger) == 1, "it may come to the new one"
    with ledger.engine.begin() as connection:
        connection.execute(text("DELETE FROM counterfoil.raw_record"))
    hold(ledger, 1)
    assert let_go(ledger) == 0, "it came to the old one, held after the new one had registered"
    in_transaction(ledger.engine, lambda c: sessions.close_session(c, old))
    assert let_go(ledger) == 1


def test_many_are_let_go_in_batches_by_many_workers_at_once_each_exactly_once(ledger: Bed) -> None:
    """S1: rows that another releaser holds are passed over."""
    fill(ledger, 400)
    hand = Hand(ledger.engine, lease=DAY)
    hold(ledger, *range(1, 401))
    registered(ledger, 9)

    def all_of_them(_: int) -> int:
        total = 0
        while gone := let_go(ledger, limit=30):
            assert gone <= 30
            total += gone
        return total

    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(all_of_them, range(4))) + let_go(ledger) == 400
    assert set(statuses(ledger)) == {"released"}
    assert sent(ledger, hand) == 400
    assert ledger.one("SELECT count(*) FROM counterfoil.outbox WHERE kind = 'command'") == 400


def test_letting_go_of_a_record_makes_no_operation_due_that_does_not_wait_or_waits_for_its_time(ledger: Bed) -> None:
    """S3, L4."""
    fill(ledger, 2)
    with ledger.engine.begin() as connection:
        later = "counterfoil.ledger_time() + interval '1 hour'"
        connection.execute(text(f"UPDATE counterfoil.state SET state = 'retry_wait', not_before = {later} WHERE number = 1"))
        connection.execute(
            text(
                "UPDATE counterfoil.state SET state = 'not_applicable', due_at = NULL, closed_at = counterfoil.ledger_time()"
                " WHERE number = 2"
            )
        )
    hold(ledger, 1, 2)
    registered(ledger, 9)
    assert let_go(ledger) == 2
    rows = ledger.rows("SELECT due_at = not_before AS in_time, due_at IS NULL AS over FROM counterfoil.state ORDER BY number")
    assert rows == [{"in_time": True, "over": False}, {"in_time": None, "over": True}]


def test_a_hold_past_its_deadline_ends_in_quarantine_with_one_dead_letter(ledger: Bed) -> None:
    """L1, S12: the operation's, not one of the record beside it; a replay is not given up again at once."""
    fill(ledger)
    hand = Hand(ledger.engine, lease=timedelta(days=30))
    hold(ledger, 1)
    assert ended(ledger, hand) == 0
    ledger.shift(WEEK + MINUTE)
    assert (ended(ledger, hand), ended(ledger, hand)) == (1, 0)
    assert ledger.rows("SELECT state, reason FROM counterfoil.state") == [{"state": "quarantined", "reason": "hold_over"}]
    assert ledger.one("SELECT count(*) FROM counterfoil.outbox WHERE kind = 'dead_letter'") == 1
    assert ledger.rows("SELECT reason, fingerprint FROM counterfoil.dead_letter WHERE open") == [
        {"reason": "hold_over", "fingerprint": "schema_not_read"}
    ]
    assert statuses(ledger) == ["over"]


def test_an_operation_in_doubt_whose_hold_is_over_is_looked_up_by_who_knows_its_type(ledger: Bed) -> None:
    """S11: never quarantined while an earlier attempt may have reached the sink."""
    fill(ledger)
    hand = Hand(ledger.engine, replace(OUTSIDE, horizon=DAY), lease=timedelta(days=30))
    hand.admit()
    hand.settle(1, failed(1, AttemptOutcome.UNCERTAIN, "timeout"))
    with ledger.engine.begin() as connection:
        connection.execute(text("UPDATE counterfoil.state SET state = 'retry_wait'"))
    hold(ledger, 1)
    ledger.shift(WEEK + MINUTE)
    assert ended(ledger, hand, known=[]) == 0
    assert statuses(ledger) == ["held"]
    assert ended(ledger, hand) == 1
    assert ledger.one("SELECT state FROM counterfoil.state") == "awaiting_confirmation"


def test_a_hold_without_a_worker_of_its_type_still_ends(ledger: Bed) -> None:
    """L5: any worker's sweeper gives it up."""
    fill(ledger)
    hand = Hand(ledger.engine, lease=timedelta(days=30))
    hold(ledger, 1)
    ledger.shift(WEEK + MINUTE)
    assert ended(ledger, hand, known=[]) == 1
    assert ledger.one("SELECT state FROM counterfoil.state") == "quarantined"


@pytest.mark.parametrize("number", [None, 77], ids=["never had one", "its row is gone"])
def test_a_record_without_a_ledger_row_stays_held_whatever_the_time(ledger: Bed, number: int | None) -> None:
    """S5: never run and never dropped, and no worker's word lets it go."""
    hand = Hand(ledger.engine, lease=timedelta(days=90))
    hold(ledger, number)
    ledger.shift(timedelta(days=30))
    ended(ledger, hand)
    assert ended(ledger, hand) == 0
    registered(ledger, 9, lease=timedelta(days=90))
    assert let_go(ledger) == 0
    assert statuses(ledger) == ["held"]


def an_operation(ledger: Bed) -> tuple[UUID, bytes]:
    """The first one, and its own bytes."""
    [row] = ledger.rows("SELECT operation_id, value FROM counterfoil.operation JOIN counterfoil.payload USING (number)")
    return row["operation_id"], bytes(row["value"])


def test_a_record_is_let_go_once_its_ledger_row_turns_up_with_its_bytes(ledger: Bed) -> None:
    """S5, S6: a restored database that has caught up; its operation sends its own record, once."""
    claimed = uuid4()
    strangers(ledger, (claimed, framed(9)))
    assert taken_up(ledger) == TakenUp([], [], [])
    fill(ledger)
    hand = Hand(ledger.engine, lease=DAY)
    _, cause = strangers(ledger, (claimed, framed(9)), an_operation(ledger))
    assert [one.cause for one in taken_up(ledger).let_go] == [cause]
    assert taken_up(ledger) == TakenUp([], [], [])
    assert (sent(ledger, hand), sent(ledger, hand)) == (1, 0)
    assert statuses(ledger) == ["held", "released"]


def test_a_record_that_no_worker_could_read_is_held_on_for_the_operation_that_turned_up(ledger: Bed) -> None:
    fill(ledger)
    [cause] = strangers(ledger, an_operation(ledger), reason=Reason.SCHEMA_NOT_READ)
    assert taken_up(ledger).adopted == [cause]
    assert ledger.rows("SELECT status, number FROM counterfoil.raw_record") == [{"status": "held", "number": 1}]
    assert taken_up(ledger) == TakenUp([], [], [])


def test_a_record_whose_operation_has_other_bytes_is_quarantined_with_one_dead_letter(ledger: Bed) -> None:
    """S8, S12, D58: forged, or of a lost timeline; as a worker does with it."""
    fill(ledger)
    operation, _ = an_operation(ledger)
    [cause] = strangers(ledger, (operation, framed(9)))
    assert [one.id for one in taken_up(ledger).given_up] == [cause]
    assert taken_up(ledger) == TakenUp([], [], [])
    assert ledger.rows("SELECT status, reason, number FROM counterfoil.raw_record") == [
        {"status": "quarantined", "reason": "digest_mismatch", "number": None}
    ]
    [letter] = ledger.rows("SELECT key, value, headers FROM counterfoil.outbox WHERE kind = 'dead_letter'")
    assert (bytes(letter["key"]), bytes(letter["value"])) == (b"k", framed(9))
    assert dict(letter["headers"])["cf_cause"] == str(cause)
    assert ledger.one("SELECT count(*) FROM counterfoil.dead_letter WHERE open AND raw = :cause", cause=cause) == 1
    assert ledger.one("SELECT state FROM counterfoil.state") == "queued"


def test_the_records_without_an_operation_are_looked_at_a_few_at_a_time_and_all_in_turn(
    ledger: Bed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """L5: a million of them cost each look the same."""
    monkeypatch.setattr(taking_up, "AT_ONCE", 2)
    fill(ledger)
    *_, last = strangers(ledger, *((uuid4(), framed(9)) for _ in range(4)), an_operation(ledger))
    rounds = Rounds(WEEK)
    found = [one.cause for _ in range(6) for one in taken_up(ledger, rounds).let_go]
    assert found == [last]
