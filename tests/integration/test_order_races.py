"""Settle against admit, callers against each other, and all of them at once: nobody is stranded, and no lock waits in a ring."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest
from psycopg import errors
from sqlalchemy import Connection, exc, text

from counterfoil import cancel, enqueue, enqueue_many
from counterfoil.core.outcomes import AttemptOutcome
from counterfoil.core.states import State
from counterfoil.ledger import admission, ordering, settlement
from counterfoil.ledger.admission import Why
from counterfoil.ledger.statements import ordering as statements
from examples.upsert_projection import Stock
from tests.support.ledgers import Bed
from tests.support.lines import LATEST, STRICT, Line
from tests.support.stock import done, failed
from tests.support.waiting import eventually

WAITING = """SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"""
DEADLOCKS = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"


@contextmanager
def beside(work: Callable[[], Any]) -> Iterator[Callable[[], Any]]:
    """Runs `work` on a thread; the call gives its result."""
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(work)
        yield lambda: running.result(30)


def settle(connection: Connection, line: Line, number: int) -> None:
    locked = settlement.lock(connection, [number])
    settlement.save(connection, line.hand.writer, line.rules, locked, [settlement.Result(number, done(1))])


def admit(connection: Connection, line: Line, *numbers: int) -> admission.Admission:
    records = [line.record(number) for number in numbers]
    return admission.admit(connection, line.hand.writer, line.hand.session, line.rules, records)


@pytest.mark.parametrize("rules", [STRICT, LATEST], ids=["strict", "latest wins"])
def test_an_admission_that_meets_a_settlement_waits_for_it_and_runs(ledger: Bed, rules: Any) -> None:
    """H1: it sees what the settlement has committed, not what it saw before the lock."""
    line = Line(ledger, rules)
    first, second = line.enqueue(("a", 1)) + line.enqueue(("b", 1))
    line.admit(first, second)
    (second,) = line.enqueue(("a", 2))
    with ledger.engine.connect() as connection:
        settle(connection, line, first)
        with beside(lambda: line.admit(second)) as result:
            eventually(lambda: ledger.one(WAITING) == 1, what="the admission waits for the entity")
            connection.commit()
            assert set(result().admitted) == {second}


@pytest.mark.parametrize("rules", [STRICT, LATEST], ids=["strict", "latest wins"])
def test_a_settlement_that_meets_an_admission_waits_for_it_and_sends_the_record_again(ledger: Bed, rules: Any) -> None:
    """H1: the admission told the operation to wait; the settlement sees that, and sends it."""
    line = Line(ledger, rules)
    (first,) = line.enqueue(("a", 1))
    line.admit(first)
    (second,) = line.enqueue(("a", 2))
    line.sent()
    with ledger.engine.connect() as connection:
        assert admit(connection, line, second).left == {second: Why.WAITS}
        with beside(lambda: line.hand.settle(first, done(1))) as result:
            eventually(lambda: ledger.one(WAITING) == 1, what="the settlement waits for the entity")
            connection.commit()
            result()
    assert line.sent() == [second]


def test_without_the_entitys_lock_an_operation_is_stranded(ledger: Bed, monkeypatch: pytest.MonkeyPatch) -> None:
    """H1: the same as above with the lock taken out, so that the tests above are known to see it."""
    nothing = text("SELECT 1 WHERE false")
    monkeypatch.setattr(ordering, "hold", lambda connection, numbers: None)
    monkeypatch.setattr(ordering, "LOCK_LINES", nothing)
    line = Line(ledger)
    (first,) = line.enqueue(("a", 1))
    line.admit(first)
    (second,) = line.enqueue(("a", 2))
    line.sent()
    with ledger.engine.connect() as connection:
        assert admit(connection, line, second).left == {second: Why.WAITS}
        line.hand.settle(first, done(1))
        connection.commit()
    assert line.sent() == [], "told to wait after nobody was left to send it"
    assert statements.LOCK_LINES is not nothing


def test_one_whose_row_somebody_else_holds_is_sent_all_the_same(ledger: Bed) -> None:
    """H1: its row is not waited for under the entity's lock; a sweeper that holds it may have decided before the head moved."""
    line = Line(ledger)
    first, second = line.enqueue(("a", 1), ("a", 2))
    line.admit(first, second)
    line.sent()
    with ledger.engine.connect() as connection:
        connection.execute(text("SELECT 1 FROM counterfoil.state WHERE number = :n FOR NO KEY UPDATE"), {"n": second})
        line.hand.settle(first, done(1))
        assert line.sent() == [second]
    assert set(line.admit(second).admitted) == {second}


def test_callers_of_one_strict_entity_take_their_numbers_one_after_the_other(ledger: Bed) -> None:
    """The second waits for the first one's commit; a worker waits for neither."""
    line = Line(ledger)
    (head,) = line.enqueue(("a", 1))
    with ledger.engine.connect() as connection:
        enqueue(connection, line.type, Stock("a", 2, 2))
        with beside(lambda: line.enqueue(("a", 3))) as result:
            eventually(lambda: ledger.one(WAITING) == 1, what="the second caller waits")
            assert set(line.admit(head).admitted) == {head}
            line.hand.settle(head, done(1))
            connection.commit()
            result()
    rows = ledger.rows(
        "SELECT o.version, s.position, p.number FROM counterfoil.state s JOIN counterfoil.operation o USING (number)"
        " JOIN counterfoil.payload p USING (number) ORDER BY s.position"
    )
    assert [row["position"] for row in rows] == [1, 2, 3]


def test_a_caller_with_a_lock_time_out_is_told_and_nothing_was_written(ledger: Bed) -> None:
    """What the guide advises: the error is PostgreSQL's own."""
    line = Line(ledger)
    with ledger.engine.connect() as connection, ledger.engine.connect() as other:
        enqueue(connection, line.type, Stock("a", 1, 1))
        other.execute(text("SET LOCAL lock_timeout = '20ms'"))
        with pytest.raises(exc.OperationalError) as told:
            enqueue(other, line.type, Stock("a", 2, 2))
        assert isinstance(told.value.orig, errors.LockNotAvailable)
        other.rollback()
        connection.commit()
    assert ledger.one("SELECT count(*) FROM counterfoil.operation") == 1


def test_callers_of_other_entities_and_of_newer_versions_do_not_wait(ledger: Bed) -> None:
    """Only a Strict entity makes callers wait, and a LatestWins one while it is new."""
    strict, latest = Line(ledger), Line(ledger, LATEST)
    latest.enqueue(("a", 1))
    with ledger.engine.connect() as one, ledger.engine.connect() as other:
        other.execute(text("SET LOCAL lock_timeout = '1ms'"))
        enqueue_many(one, latest.type, [Stock("a", 2, 2)])
        enqueue_many(other, latest.type, [Stock("a", 3, 3)])
        enqueue_many(one, strict.type, [Stock("b", 2, 2)])
        enqueue_many(other, strict.type, [Stock("c", 3, 3)])
        one.commit()
        other.commit()


class Storm:
    """Workers, sweepers and callers on the same few entities at once, until everything is over."""

    def __init__(self, line: Line, entities: int, each: int) -> None:
        self.line = line
        self.entities = [f"e{n}" for n in range(entities)]
        self.each = each
        self.ran: list[tuple[str, int]] = []
        self.errors: list[BaseException] = []
        self.over = threading.Event()

    def run(self) -> None:
        parts = [self.callers, self.callers, self.worker, self.worker, self.sweeper]
        threads = [threading.Thread(target=self._part, args=(part, seed)) for seed, part in enumerate(parts)]
        for thread in threads:
            thread.start()
        try:
            eventually(lambda: bool(self.errors) or self.finished(), within=90, what="the storm")
        finally:
            self.over.set()
            for thread in threads:
                thread.join(30)

    def finished(self) -> bool:
        expected = 2 * self.each * len(self.entities)
        closed = "SELECT count(*) FROM counterfoil.state WHERE closed_at IS NOT NULL OR state = 'succeeded'"
        return bool(self.line.bed.one(closed) == expected)

    def _part(self, part: Callable[[random.Random, int], None], seed: int) -> None:
        try:
            part(random.Random(seed), seed)
        except BaseException as error:  # noqa: BLE001 - told by the test's own thread
            self.errors.append(error)

    def callers(self, chance: random.Random, seed: int) -> None:
        """Enqueues on all entities in each transaction, and cancels some of what it has."""
        for step in range(self.each):
            with self.line.bed.engine.begin() as connection:
                version = 2 * step + seed
                ids = enqueue_many(connection, self.line.type, [Stock(entity, version, 1) for entity in self.entities])
            if chance.random() < 0.3:
                with self.line.bed.engine.begin() as connection:
                    cancel(connection, chance.choice(ids), reason="storm")

    def worker(self, chance: random.Random, seed: int) -> None:
        """Takes the records in the outbox, in any order; every third one that it admits is given back before it is sent."""
        while not self.over.is_set():
            numbers = list(dict.fromkeys(self.line.sent()))
            chance.shuffle(numbers)
            admitted = list(self.line.admit(*numbers).admitted.values()) if numbers else []
            for one in admitted:
                if chance.random() < 0.3:
                    self.line.hand.settle(one.number, failed(one.attempt, AttemptOutcome.NOT_SENT, "not_sent_shutdown"))
                else:
                    self.ran.append((self.entity(one.number), one.number))
                    self.line.hand.settle(one.number, done(one.attempt))

    def sweeper(self, chance: random.Random, seed: int) -> None:
        while not self.over.is_set():
            self.line.sweep()

    def entity(self, number: int) -> str:
        return str(self.line.bed.one("SELECT entity FROM counterfoil.operation WHERE number = :n", n=number))


def test_workers_sweepers_and_callers_on_the_same_entities_wait_in_no_ring_and_strand_nobody(ledger: Bed) -> None:
    """S7, L1, D88: all is over, in order, by no deadlock: every waiting operation was found by whoever freed its entity."""
    storm = Storm(Line(ledger), entities=4, each=8)
    storm.run()
    assert storm.errors == []
    positions = {row["number"]: row["position"] for row in ledger.rows("SELECT number, position FROM counterfoil.state")}
    for entity in storm.entities:
        ran = [positions[number] for name, number in storm.ran if name == entity]
        assert ran == sorted(ran)
    assert ledger.one(DEADLOCKS) == 0
    states = {State(row["state"]) for row in ledger.rows("SELECT DISTINCT state FROM counterfoil.state")}
    assert states == {State.SUCCEEDED, State.NOT_APPLICABLE}
