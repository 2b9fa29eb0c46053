"""No statement about an ordered type reads a table from end to end, however large the ledger and stale its statistics."""

from __future__ import annotations

from datetime import timedelta

import pytest
from sqlalchemy import Connection, text

from counterfoil import cancel, enqueue_many, operation_id
from counterfoil.core.outcomes import AttemptOutcome
from counterfoil.core.standing import Rules
from counterfoil.ledger import due, settlement
from counterfoil.ledger.admission import Why
from counterfoil.ledger.engine import in_transaction
from examples.upsert_projection import Stock
from tests.integration.test_plans import FACTOR, check, newest
from tests.support.ledgers import Bed, bulk_ledger
from tests.support.lines import LATEST, STRICT, Line
from tests.support.plans import explained
from tests.support.stock import done, failed

OPERATIONS = 60_000
BATCH = 200
HOUR = timedelta(hours=1)
#: Every operation of the large ledger has an entity of its own, or is one of 2,000 of its entity.
ENTITIES = (
    "INSERT INTO counterfoil.entity (id, head) SELECT md5(n::text)::uuid, 1 FROM generate_series(1, 60000) n",
    "INSERT INTO counterfoil.entity_tail (entity, taken) SELECT id, 1 FROM counterfoil.entity",
    "UPDATE counterfoil.state SET entity_id = md5((number % 30000)::text)::uuid, position = number WHERE number % 2 = 0",
    "UPDATE counterfoil.state SET entity_id = md5((number % 30)::text)::uuid, position = number WHERE number % 2 = 1",
)


@pytest.fixture
def full(ledger: Bed) -> Bed:
    """A large ledger whose statistics say that it is nearly empty."""
    with ledger.engine.begin() as connection:
        for table in ("operation", "payload", "state", "outbox", "entity", "entity_tail"):
            connection.execute(text(f"ALTER TABLE counterfoil.{table} SET (autovacuum_enabled = false)"))
        connection.execute(text("ANALYZE"))
    bulk_ledger(ledger.engine, OPERATIONS, statistics=False)
    with ledger.engine.begin() as connection:
        for statement in ENTITIES:
            connection.execute(text(statement))
    return ledger


def work(line: Line, name: str, count: int) -> None:
    """Two operations of each entity: enqueued, asked for, told to wait, settled in each way, and the next one sent."""
    with line.bed.engine.begin() as connection:
        stocks = [Stock(f"{name}-{n}", version, n) for version in (1, 2) for n in range(count)]
        enqueue_many(connection, line.type, stocks[:count])
        enqueue_many(connection, line.type, stocks[:count])
        candidates = newest(connection, count)
    first = line.hand.admit(*candidates).admitted
    assert len(first) == count
    with line.bed.engine.begin() as connection:
        enqueue_many(connection, line.type, stocks[count:])
        later = newest(connection, count)
    assert set(line.hand.admit(*later).left.values()) == {Why.WAITS}
    half = [number for number in first if number % 2]

    def settle(connection: Connection) -> None:
        locked = settlement.lock(connection, list(first))
        results = [settlement.Result(number, done(1)) for number in half]
        results += [settlement.Result(n, failed(1, AttemptOutcome.TEMPORARY)) for n in first if n not in half]
        settlement.save(connection, line.hand.writer, line.rules, locked, results)

    in_transaction(line.bed.engine, settle)
    line.hand.admit(*later)
    in_transaction(line.bed.engine, lambda c: due.send_due(c, line.hand.writer, limit=BATCH, resend_after=HOUR))


@pytest.mark.parametrize("rules", [STRICT, LATEST], ids=["strict", "latest wins"])
def test_no_hot_statement_of_an_ordered_type_scans_a_table(full: Bed, rules: Rules) -> None:
    """Design §11, for the entity's lock, the admission under it, the head and what comes free."""
    line = Line(full, rules)
    for round_ in ("stale", "fresh"):
        for count in (BATCH, 1):
            with explained(full.engine) as plans:
                work(line, f"{round_}-{count}", count)
            check(plans, count)
        with full.engine.begin() as connection:
            connection.execute(text("ANALYZE"))


def test_an_entity_with_a_long_line_costs_no_more_than_a_short_one(full: Bed) -> None:
    """The head is found by one look into an index; what waits behind it is not read."""
    line = Line(full)
    with full.engine.begin() as connection:
        enqueue_many(connection, line.type, [Stock("long", version, 1) for version in range(3_000)])
        records = newest(connection, 3_000)
        first = operation_id(connection, line.type, Stock("long", 0, 1))
    query = "SELECT number, position FROM counterfoil.state WHERE number = ANY (:numbers)"
    ours = {row["number"]: row["position"] for row in full.rows(query, numbers=[each.number for each in records])}
    by_position = sorted(records, key=lambda each: ours[each.number])
    with explained(full.engine) as plans:
        assert set(line.hand.admit(by_position[0]).admitted) == {by_position[0].number}
        assert line.hand.admit(by_position[-1]).left == {by_position[-1].number: Why.WAITS}
        line.hand.settle(by_position[0].number, failed(1, AttemptOutcome.NOT_SENT, "not_sent_shutdown"))
        with full.engine.begin() as connection:
            cancel(connection, first, reason="not wanted")
        assert line.hand.admit(by_position[1]).admitted
    assert [plan.statement for plan in plans.found if plan.scanned() or plan.rows() > FACTOR] == []
