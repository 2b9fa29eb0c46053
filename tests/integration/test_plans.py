"""No hot statement reads a table from end to end, nor works more than its batch asks for, however stale the statistics are."""

from __future__ import annotations

from datetime import timedelta

import pytest
from sqlalchemy import Connection, text

from counterfoil import cancel, enqueue, enqueue_many, status
from counterfoil.core.outcomes import AttemptOutcome
from counterfoil.ledger import due, relaying, releasing, settlement
from counterfoil.ledger.admission import Candidate
from counterfoil.ledger.engine import in_transaction
from counterfoil.streams.held.taking_up import Rounds
from examples.upsert_projection import Stock
from tests.support.ledgers import Bed, bulk_ledger
from tests.support.plans import Plans, explained
from tests.support.stock import Hand, done, failed, upsert_projection

OPERATIONS = 120_000
BATCH = 500
HOUR = timedelta(hours=1)
#: A statement's busiest node may handle so many rows for each that it was asked about (three old versions of a row, a few joins).
FACTOR = 8
#: What relay and workers have noted of those operations, and the sweeper asks for.
HISTORY = (
    "UPDATE counterfoil.state SET sent_at = counterfoil.ledger_time() WHERE state = 'queued'",
    (
        "INSERT INTO counterfoil.published (number, outbox_id, kind, partition, record_offset, at)"
        " SELECT number, number, 'command', 0, number, counterfoil.ledger_time() FROM counterfoil.operation"
    ),
    (
        "INSERT INTO counterfoil.acknowledged (topic, partition, up_to, session, at)"
        " SELECT 'TOPIC', n % 12, n * 10, 1, counterfoil.ledger_time() FROM generate_series(1, 20000) n"
    ),
    (
        "INSERT INTO counterfoil.raw_record (id, status, reason, type, number, topic, partition, record_offset, due_at, at)"
        " SELECT gen_random_uuid(), 'held', 'unknown_type', 'gone', n, 'elsewhere', 0, n,"
        " counterfoil.ledger_time() + (n / 2000) * interval '1 day', counterfoil.ledger_time() FROM generate_series(1, 20000) n"
    ),
    (
        "INSERT INTO counterfoil.raw_record"
        " (id, status, reason, type, number, topic, partition, record_offset, due_at, at, value)"
        " SELECT gen_random_uuid(), 'held', 'schema_not_read', 'bulk', 1000000 + n, 'there', 0, n,"
        " counterfoil.ledger_time() + interval '1 day', counterfoil.ledger_time(), '\\x0000000005'::bytea"
        " FROM generate_series(1, 20000) n"
    ),
    (
        "INSERT INTO counterfoil.raw_record (id, status, reason, type, topic, partition, record_offset, headers, due_at, at)"
        " SELECT gen_random_uuid(), 'held', 'unknown_operation_record', 'bulk', 'nowhere', 0, n, ''::bytea,"
        " counterfoil.ledger_time(), counterfoil.ledger_time() FROM generate_series(1, 20000) n"
    ),
    (
        "INSERT INTO counterfoil.worker (role, name, started_at, heartbeat_at, lease_until, capable)"
        " SELECT 'worker', 'w', now(), now(), now() + interval '1 day', '{\"bulk\": 5}'::jsonb"
    ),
)


@pytest.fixture
def full(ledger: Bed) -> Bed:
    """A large ledger whose statistics say that it is nearly empty, and that every operation is queued."""
    with ledger.engine.begin() as connection:
        for table in ("operation", "payload", "state", "outbox", "raw_record", "acknowledged"):
            connection.execute(text(f"ALTER TABLE counterfoil.{table} SET (autovacuum_enabled = false)"))
        enqueue_many(connection, upsert_projection, [Stock(f"early-{n}", 1, n) for n in range(5)])
        connection.execute(text("ANALYZE"))
    bulk_ledger(ledger.engine, OPERATIONS, statistics=False)
    with ledger.engine.begin() as connection:
        for statement in HISTORY:
            connection.execute(text(statement.replace("TOPIC", f"{ledger.name}.bulk.commands")))
    return ledger


def work(bed: Bed, hand: Hand, name: str, count: int) -> None:
    """Every hot statement once: enqueue, admit, a redelivery, settle in each way, and all sweepers."""
    with bed.engine.begin() as connection:
        enqueue_many(connection, upsert_projection, [Stock(f"{name}-{n}", 1, n) for n in range(count)])
        enqueue_many(connection, upsert_projection, [Stock(f"{name}-{n}", 1, n) for n in range(count)])
        candidates = newest(connection, count)
    admitted = hand.admit(*candidates).admitted
    assert len(admitted) == count
    hand.admit(*candidates)  # the same records once more
    half = [number for number in admitted if number % 2]

    def settle(connection: Connection) -> None:
        locked = settlement.lock(connection, list(admitted))
        results = [settlement.Result(number, done(1)) for number in half]
        results += [settlement.Result(n, failed(1, AttemptOutcome.TEMPORARY)) for n in admitted if n not in half]
        settlement.save(connection, hand.writer, hand.rules, locked, results)

    in_transaction(bed.engine, settle)
    sweep(bed, hand)


def newest(connection: Connection, count: int) -> list[Candidate]:
    """A command record of each of the operations that were enqueued last."""
    rows = connection.execute(
        text("SELECT number, revision, value_hash FROM counterfoil.payload ORDER BY number DESC LIMIT :count"), {"count": count}
    )
    return [Candidate(row.number, row.revision, bytes(row.value_hash), "commands", 0, row.number) for row in rows]


def sweep(bed: Bed, hand: Hand) -> None:
    by_type = {hand.rules.name: hand.rules}
    in_transaction(bed.engine, Rounds(HOUR).look)
    assert len(in_transaction(bed.engine, lambda c: releasing.release_capable(c, limit=BATCH))) == BATCH
    in_transaction(bed.engine, lambda c: releasing.end_holds(c, hand.writer, by_type, limit=BATCH))
    in_transaction(bed.engine, lambda c: due.send_due(c, hand.writer, limit=BATCH, resend_after=HOUR))
    in_transaction(bed.engine, lambda c: due.end_leases(c, hand.writer, by_type, limit=BATCH))
    in_transaction(bed.engine, lambda c: due.resend_unprobed(c, hand.writer, by_type, limit=BATCH, look_again=HOUR))
    wanted = relaying.Wanted(dict.fromkeys(range(64), 0), BATCH, BATCH, 10_000_000)
    in_transaction(bed.engine, lambda c: relaying.read_waiting(c, wanted))


def check(plans: Plans, count: int) -> None:
    assert len(plans.found) > 10
    assert [(plan.scanned(), plan.statement) for plan in plans.found if plan.scanned()] == []
    assert [plan.statement for plan in plans.found if plan.rows() > FACTOR * max(count, BATCH)] == []


def test_no_hot_statement_scans_a_table_with_stale_or_fresh_statistics(full: Bed) -> None:
    """Design §11, D89: the plan is an index's, for one operation and for a batch of them, whatever the statistics say."""
    hand = Hand(full.engine, lease=HOUR)
    for round_ in ("stale", "fresh"):
        for count in (BATCH, 1):
            with explained(full.engine) as plans:
                work(full, hand, f"{round_}-{count}", count)
            check(plans, count)
        with full.engine.begin() as connection:
            connection.execute(text("ANALYZE"))


def test_what_a_caller_asks_for_scans_no_table(full: Bed) -> None:
    """Design §11: enqueue, status and cancel of one operation cost the same in a ledger of any size."""
    with explained(full.engine) as plans, full.engine.begin() as connection:
        first = enqueue(connection, upsert_projection, Stock("one", 1, 1))
        enqueue(connection, upsert_projection, Stock("one", 1, 1))
        status(connection, first)
        cancel(connection, first, reason="not wanted")
    for plan in plans.found:
        assert plan.scanned() == set(), plan.statement
        assert plan.rows() <= FACTOR, plan.statement


def test_500_due_operations_are_selected_by_the_one_partial_index(full: Bed) -> None:
    """Design §7.6: with 1 % of the ledger open, the sweeper reads the due ones and no others."""
    hand = Hand(full.engine, lease=HOUR)
    with explained(full.engine) as plans:
        in_transaction(full.engine, lambda c: due.send_due(c, hand.writer, limit=BATCH, resend_after=HOUR))
    selects = plans.of("SKIP LOCKED")
    assert selects
    for plan in selects:
        assert "state_due" in plan.indexes()
        assert plan.rows() <= 2 * BATCH
