"""LatestWins on real PostgreSQL: what a newer version replaces, what it waits for, and when the entity is free again."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from sqlalchemy import text

from counterfoil import enqueue_many
from counterfoil.core.outcomes import AttemptOutcome
from counterfoil.ledger.admission import Why
from examples.upsert_projection import Stock
from tests.integration.test_order_strict import requeue_with_risk
from tests.support.ledgers import Bed
from tests.support.lines import LATEST, Line
from tests.support.stock import done, failed

GUARDED = replace(LATEST, keyed=False, horizon=None, version_guard=True)


def reasons(ledger: Bed, *numbers: int) -> list[str]:
    rows = {row["number"]: row["reason"] for row in ledger.rows("SELECT number, reason FROM counterfoil.state")}
    return [rows[number] for number in numbers]


def test_of_versions_that_were_never_sent_only_the_newest_is(ledger: Bed) -> None:
    """S7: in one batch and in any order; the others are superseded, each with a state record and without an attempt."""
    line = Line(ledger, LATEST)
    numbers = line.enqueue(*(("a", version) for version in (2, 4, 1, 3)), ("b", 1))
    admission = line.admit(*numbers)
    assert set(admission.admitted) == {numbers[1], numbers[4]}
    assert line.states(numbers) == ["not_applicable", "running", "not_applicable", "not_applicable", "running"]
    assert reasons(ledger, numbers[0], numbers[2], numbers[3]) == ["superseded"] * 3
    assert ledger.one("SELECT sum(attempt) FROM counterfoil.state") == 2
    assert ledger.one("SELECT count(*) FROM counterfoil.outbox WHERE kind = 'state'") == 3
    assert line.head() == 4


def test_an_older_version_is_never_admitted_after_a_newer_one(ledger: Bed) -> None:
    """S7, D20: read late from another partition, it is refused as stale and recorded."""
    line = Line(ledger, LATEST)
    (second,) = line.enqueue(("a", 2))
    line.admit(second)
    line.hand.settle(second, done(1))
    (first,) = line.enqueue(("a", 1))
    assert line.admit(first).left == {first: Why.MOVED}
    assert reasons(ledger, first) == ["superseded"]


def test_a_newer_version_waits_for_one_in_flight_and_is_sent_when_that_is_settled(ledger: Bed) -> None:
    """H4: also where the older one fails for good; one that was told to wait is replaced by a newer one that comes."""
    line = Line(ledger, LATEST)
    (first,) = line.enqueue(("a", 1))
    line.admit(first)
    (second,) = line.enqueue(("a", 2))
    assert line.admit(second).left == {second: Why.WAITS}
    (third,) = line.enqueue(("a", 3))
    line.sent()
    assert line.admit(third).left == {third: Why.WAITS}
    assert line.states([first, second, third]) == ["running", "not_applicable", "queued"]
    line.hand.settle(first, failed(1, AttemptOutcome.PERMANENT, "rejected"))
    assert line.sent() == [third]
    assert set(line.admit(third).admitted) == {third}


def test_a_retry_of_an_older_version_gives_way_to_a_newer_one(ledger: Bed) -> None:
    """S7: certainly not applied, so it is superseded, whether its backoff is over or not."""
    line = Line(ledger, LATEST)
    (first,) = line.enqueue(("a", 1))
    line.admit(first)
    line.hand.settle(first, failed(1, AttemptOutcome.TEMPORARY))
    (second,) = line.enqueue(("a", 2))
    assert set(line.admit(second).admitted) == {second}
    assert line.states([first]) == ["not_applicable"]
    assert reasons(ledger, first) == ["superseded"]


@pytest.mark.parametrize("guarded", [False, True], ids=["no guard", "version guard"])
def test_a_doubtful_older_version_blocks_a_newer_one_unless_the_sink_refuses_older_ones(ledger: Bed, guarded: bool) -> None:
    """S7, H4: v1 may land after v2; a version guard makes that harmless."""
    line = Line(ledger, GUARDED if guarded else LATEST)
    (first,) = line.enqueue(("a", 1))
    line.admit(first)
    line.hand.settle(first, failed(1, AttemptOutcome.UNCERTAIN, "timeout"))
    second, other = line.enqueue(("a", 2), ("b", 1))
    admission = line.admit(second, other)
    assert set(admission.admitted) == ({second, other} if guarded else {other}), "L3: the other entity goes on"
    line.sent()
    line.hand.settle(first, done(1))  # the late receipt
    assert line.sent() == ([] if guarded else [second])
    if not guarded:
        assert set(line.admit(second).admitted) == {second}


def test_a_doubtful_version_that_was_overtaken_is_looked_up_and_not_sent_again(ledger: Bed) -> None:
    """S10, S11: a guard let v2 pass; v1 is neither sent again nor called superseded before a probe has spoken."""
    line = Line(ledger, GUARDED)
    (first,) = line.enqueue(("a", 1))
    line.admit(first)
    line.hand.settle(first, failed(1, AttemptOutcome.UNCERTAIN, "timeout"))
    (second,) = line.enqueue(("a", 2))
    line.admit(second)
    requeue_with_risk(ledger, first)
    assert line.admit(first).left == {first: Why.MOVED}
    assert line.states([first]) == ["awaiting_confirmation"]
    assert reasons(ledger, first) == ["later_sent"]


def test_after_an_accepted_risk_the_entity_is_free_only_when_the_waits_of_all_attempts_are_over(ledger: Bed) -> None:
    """T13: v1 in flight, requeued with accepted risk, done; then v2 would be overwritten by v1's first request."""
    line = Line(ledger, replace(LATEST, keyed=False, horizon=None))
    (first,) = line.enqueue(("a", 1))
    line.admit(first)
    line.hand.settle(first, failed(1, AttemptOutcome.UNCERTAIN, "timeout"))
    requeue_with_risk(ledger, first)
    assert set(line.admit(first).admitted) == {first}
    line.hand.settle(first, done(2))
    (second,) = line.enqueue(("a", 2))
    line.sent()
    assert line.admit(second).left == {second: Why.WAITS}
    assert line.sweep() == 0
    ledger.shift(timedelta(seconds=65))  # run time, send grace, request life, read lag
    assert line.sweep() == 1
    assert set(line.admit(second).admitted) == {second}


def test_a_quarantined_version_is_superseded_when_it_is_replayed_behind_a_newer_one(ledger: Bed) -> None:
    """T10: it can neither run nor hold anything up."""
    line = Line(ledger, LATEST)
    (first,) = line.enqueue(("a", 1))
    line.admit(first)
    line.hand.settle(first, failed(1, AttemptOutcome.PERMANENT, "rejected"))
    (second,) = line.enqueue(("a", 2))
    assert set(line.admit(second).admitted) == {second}, "what is quarantined holds no newer version"
    line.hand.settle(second, done(1))
    with ledger.engine.begin() as connection:  # what a person's replay writes
        connection.execute(
            text("UPDATE counterfoil.state SET state = 'queued', sequence = sequence + 1 WHERE number = :n"), {"n": first}
        )
    assert line.admit(first).left == {first: Why.MOVED}
    assert (line.states([first]), reasons(ledger, first)) == (["not_applicable"], ["superseded"])


def test_a_newer_version_behind_one_in_review_is_not_forgotten(ledger: Bed) -> None:
    """T14: it waits as long as nobody decides, and is sent when somebody does."""
    line = Line(ledger, LATEST)
    (first,) = line.enqueue(("a", 1))
    line.admit(first)
    line.hand.settle(first, failed(1, AttemptOutcome.UNCERTAIN, "timeout"))
    with ledger.engine.begin() as connection:
        connection.execute(text("UPDATE counterfoil.state SET state = 'manual_review', sequence = sequence + 1"))
    (second,) = line.enqueue(("a", 2))
    assert line.admit(second).left == {second: Why.WAITS}
    ledger.shift(timedelta(days=1, hours=1))
    line.sent()
    assert line.sweep() == 1, "once a day"
    assert line.admit(second).left == {second: Why.WAITS}


def test_a_newer_version_for_later_replaces_nothing_yet(ledger: Bed) -> None:
    """`not_before` of v2 is tomorrow: v1 runs today."""
    line = Line(ledger, LATEST)
    (first,) = line.enqueue(("a", 1))
    tomorrow = ledger.one("SELECT counterfoil.ledger_time() + interval '1 day'")
    with ledger.engine.begin() as connection:
        enqueue_many(connection, line.type, [Stock("a", 2, 2)], not_before=tomorrow)
    assert set(line.admit(first).admitted) == {first}
