"""The statement that admits and core's rule of admission say the same, over every standing, on real PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import product
from typing import NamedTuple

from sqlalchemy import text

from counterfoil import enqueue_many
from counterfoil.core.decisions import Kept, Move, reviews
from counterfoil.core.decisions.admission import may_admit
from counterfoil.core.outcomes import AttemptOutcome
from counterfoil.core.standing import Rules
from counterfoil.core.states import State
from counterfoil.core.verdicts import Seen, Verdict
from counterfoil.ledger import admission, moves
from counterfoil.ledger.admission import Candidate
from counterfoil.ledger.decided import Decided
from examples.upsert_projection import Stock
from tests.support.ledgers import Bed
from tests.support.standings import KINDS, OUTSIDE
from tests.support.stock import Hand, done, failed, upsert_projection

MOMENT = timedelta(microseconds=1)


class Row(NamedTuple):
    """What one operation's row is set to; instants as the distance from now."""

    state: State
    doubt: tuple[timedelta, int, int] | None  #: age, revision and generation of the first doubtful attempt
    tries: int
    cancel: bool
    risk: bool
    not_before: timedelta | None
    revision: int  #: of the record that asks


def rows() -> Iterator[Row]:
    """Every combination; the doubts stand on both sides of the horizon's edge, to the microsecond, and under other keys."""
    horizon = OUTSIDE.horizon
    assert horizon is not None
    edge = horizon - OUTSIDE.landing
    doubts = (
        None,
        (edge, 1, 0),
        (edge - MOMENT, 1, 0),
        (timedelta(days=400), 1, 0),
        (edge - MOMENT, 0, 0),
        (edge - MOMENT, 1, 1),
    )
    states = (State.QUEUED, State.RETRY_WAIT, State.AWAITING_CONFIRMATION, State.QUARANTINED, State.MANUAL_REVIEW)
    waits = (None, timedelta(0), MOMENT)
    yield from (Row(*each) for each in product(states, doubts, (0, 1, 7), (False, True), (False, True), waits, (1, 2)))


SET = text(
    """
UPDATE counterfoil.state s SET state = :state, tries_left = :tries, cancel_asked = :cancel, accepted_risk = :risk, attempt = 3,
    outcome = :outcome, doubtful_since = counterfoil.ledger_time() - CAST(:age AS interval), doubtful_revision = :revision,
    doubtful_generation = :generation, not_before = counterfoil.ledger_time() + CAST(:wait AS interval)
WHERE number = :number
"""
)


def fill(ledger: Bed) -> tuple[datetime, list[Row]]:
    """A row of the ledger for each, at a clock that stands still."""
    wanted = list(rows())
    now: datetime = ledger.one("SELECT counterfoil.ledger_time()")
    with ledger.engine.begin() as connection:
        standing_still = f"SELECT timestamptz ''{now.isoformat()}''"
        connection.execute(
            text(
                "CREATE OR REPLACE FUNCTION counterfoil.ledger_time() RETURNS timestamptz LANGUAGE sql VOLATILE AS "
                f"'{standing_still}'"
            )
        )
        enqueue_many(connection, upsert_projection, [Stock(f"s{n}", 1, n) for n in range(len(wanted))])
        connection.execute(SET, [_values(number, row) for number, row in enumerate(wanted, start=1)])
    return now, wanted


def _values(number: int, row: Row) -> dict[str, object]:
    age, revision, generation = row.doubt or (None, None, None)
    outcome = AttemptOutcome.PRESUMED_ABSENT if row.doubt else AttemptOutcome.TEMPORARY
    return {
        "number": number,
        "state": str(row.state),
        "tries": row.tries,
        "cancel": row.cancel,
        "risk": row.risk,
        "outcome": str(outcome),
        "age": age,
        "revision": revision,
        "generation": generation,
        "wait": row.not_before,
    }


def test_the_statement_that_admits_and_the_rule_in_core_agree_on_every_standing(ledger: Bed) -> None:
    """S8, S10, S22: for each kind of sink one statement over all rows admits those, and only those, that core's rule lets run."""
    now, wanted = fill(ledger)
    hand = Hand(ledger.engine)
    candidates = [
        each._replace(revision=wanted[each.number - 1].revision) for each in sorted(hand.candidates(), key=lambda one: one.number)
    ]
    with ledger.engine.begin() as connection:
        standings = moves.lock(connection, [each.number for each in candidates]).standings
    for kind, rules in KINDS.items():
        rules = _named(rules)
        admitted = _admitted(ledger, hand, rules, candidates)
        ruled = {
            number
            for number, standing in standings.items()
            if may_admit(rules, standing, now, revision=wanted[number - 1].revision, not_before=_until(now, wanted[number - 1]))
        }
        assert admitted == ruled, kind
        assert 50 < len(ruled) < len(wanted) / 2, kind


def _named(rules: Rules) -> Rules:
    return replace(rules, name=upsert_projection.name)


def _until(now: datetime, row: Row) -> datetime | None:
    return None if row.not_before is None else now + row.not_before


def _admitted(ledger: Bed, hand: Hand, rules: Rules, candidates: list[Candidate]) -> set[int]:
    """What the statement admits; rolled back, so that the next kind of sink finds the same rows."""
    with ledger.engine.connect() as connection:
        there = set(admission.admit(connection, hand.writer, hand.session, rules, candidates).admitted)
        connection.rollback()
    return there


def test_a_persons_requeue_is_written_with_its_risk_and_admitted_once(ledger: Bed) -> None:
    """S10, S22, T3: the risk and the try are in the row, no attempt is unresolved, and the admission uses the risk up."""
    with ledger.engine.begin() as connection:
        enqueue_many(connection, upsert_projection, [Stock("s", 1, 1)])
        connection.execute(text("UPDATE counterfoil.state SET tries_left = 1"))
    hand = Hand(ledger.engine, _named(KINDS["probed, promises nothing"]))
    hand.admit()
    hand.settle(1, failed(1, AttemptOutcome.UNCERTAIN, "timeout"))
    with ledger.engine.begin() as connection:
        connection.execute(text("UPDATE counterfoil.state SET state = 'manual_review'"))
    with ledger.engine.begin() as connection:
        locked = moves.lock(connection, [1])
        standing = locked.standings[1]
        move = reviews.requeue(standing, Seen(Verdict.AMBIGUOUS, standing.sequence, locked.now))
        assert isinstance(move, Move)
        hand.writer.write(connection, locked.now, [Decided(standing, locked.facts[1], move)])
    query = "SELECT state, tries_left, accepted_risk, unresolved, outcome, doubtful_since IS NULL AS sure FROM counterfoil.state"
    assert ledger.rows(query) == [
        {
            "state": "retry_wait",
            "tries_left": 1,
            "accepted_risk": True,
            "unresolved": False,
            "outcome": "presumed_absent",
            "sure": False,
        }
    ]
    assert hand.admit().admitted[1].attempt == 2
    assert not ledger.one("SELECT accepted_risk FROM counterfoil.state")


def test_a_receipt_of_an_older_revision_leaves_a_doubt_that_no_new_key_protects(ledger: Bed) -> None:
    """S10, H3: the edited payload is not sent under its new key beside an effect of the old one."""
    with ledger.engine.begin() as connection:
        enqueue_many(connection, upsert_projection, [Stock("s", 1, 1)])
    hand = Hand(ledger.engine, _named(OUTSIDE))
    hand.admit()
    hand.settle(1, failed(1, AttemptOutcome.NOT_SENT, "not_sent_shutdown"))
    with ledger.engine.begin() as connection:  # what a person's edit and replay do
        connection.execute(
            text("INSERT INTO counterfoil.payload SELECT number, 2, value, value_hash, created_at FROM counterfoil.payload")
        )
        connection.execute(text("UPDATE counterfoil.state SET state = 'queued', revision = 2, sequence = sequence + 1"))
    kept = hand.settle(1, replace(done(1), revision=1))
    assert isinstance(kept, Kept)
    assert (kept.reason, kept.applied) == ("old_revision", True)
    record = next(each for each in hand.candidates() if each.revision == 2)
    assert hand.admit(record).left == {1: admission.Why.MOVED}
    assert ledger.one("SELECT state FROM counterfoil.state") == "awaiting_confirmation"
