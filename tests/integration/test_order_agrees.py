"""What the statement that admits says of an entity, and core's rule of turns: the same, over every pair of neighbours."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from itertools import product
from typing import NamedTuple

import pytest
from sqlalchemy import text

from counterfoil.core.decisions import ordering
from counterfoil.core.decisions.admission import may_admit
from counterfoil.core.decisions.ordering import Neighbour
from counterfoil.core.order import Ordering
from counterfoil.core.standing import Rules
from counterfoil.core.states import FINAL, State
from counterfoil.ledger import moves
from tests.support.ledgers import Bed
from tests.support.lines import LATEST, STRICT, Line

MOMENT = timedelta(microseconds=1)
HOUR = timedelta(hours=1)


class Case(NamedTuple):
    """An entity of three operations, of which the middle one asks. `over`: how long ago the older one's wait ended."""

    asks_doubtful: bool
    older: State
    older_doubtful: bool
    over: timedelta
    newer: tuple[State, bool, bool] | None  #: its state, whether it is scheduled for later, whether its cancel was asked for
    mark: int | None


def cases(rules: Rules) -> Iterator[Case]:
    waiting = (State.QUEUED, State.RETRY_WAIT)
    newer = [None, (State.QUARANTINED, False, False), *product(waiting, (False, True), (False, True))]
    marks = (1, 2, 3) if rules.ordering is Ordering.STRICT else (None, 1, 2, 3)
    overs = (timedelta(0), -MOMENT)
    yield from (Case(*each) for each in product((False, True), State, (False, True), overs, newer, marks))


SET = text(
    """
UPDATE counterfoil.state SET state = :state, outcome = :outcome, attempt = 1,
    session = CASE WHEN :state = 'running' THEN 1 END, attempt_until = CAST(:until AS timestamptz),
    doubtful_since = CASE WHEN :doubtful THEN CAST(:since AS timestamptz) END,
    doubtful_revision = CASE WHEN :doubtful THEN 1 END, doubtful_generation = CASE WHEN :doubtful THEN 0 END,
    due_at = CASE WHEN :closed THEN NULL ELSE due_at END, closed_at = CASE WHEN :closed THEN due_at END,
    not_before = CAST(:not_before AS timestamptz), cancel_asked = :cancel, sent_id = NULL, sent_at = NULL
WHERE number = :number
"""
)


@pytest.mark.parametrize(
    "rules",
    [STRICT, replace(STRICT, version_guard=True), LATEST, replace(LATEST, version_guard=True)],
    ids=["strict", "strict, guard", "latest wins", "latest wins, guard"],
)
def test_the_statement_that_admits_and_the_rule_of_turns_agree(ledger: Bed, rules: Rules) -> None:
    """S7: for every state and doubt of a neighbour on either side and every mark of the entity's row, to the microsecond."""
    wanted = list(cases(rules))
    line = Line(ledger, rules)
    now = ledger.one("SELECT counterfoil.ledger_time()")
    with ledger.engine.begin() as connection:
        body = f"SELECT timestamptz ''{now.isoformat()}''"
        connection.execute(
            text(f"CREATE OR REPLACE FUNCTION counterfoil.ledger_time() RETURNS timestamptz LANGUAGE sql VOLATILE AS '{body}'")
        )
    numbers = line.enqueue(*((f"e{n}", place) for n in range(len(wanted)) for place in (1, 2, 3)))
    trios = [numbers[at : at + 3] for at in range(0, len(numbers), 3)]
    values: list[dict[str, object]] = []
    for trio, case in zip(trios, wanted, strict=True):
        newer, scheduled, cancel = case.newer or (State.NOT_APPLICABLE, False, False)
        since, until = now - HOUR / 2, now - rules.absence_wait - case.over
        common = {"since": since, "not_before": None, "cancel": False, "until": until}
        rows = [
            (case.older, case.older_doubtful, {}),
            (State.RETRY_WAIT, case.asks_doubtful, {}),
            (newer, False, {"not_before": now + MOMENT if scheduled else None, "cancel": cancel}),
        ]
        for number, (state, doubtful, changed) in zip(trio, rows, strict=True):
            told = {"number": number, "state": state.value, "doubtful": doubtful, "closed": state in FINAL}
            outcome = "open" if state is State.RUNNING else "uncertain" if doubtful else "temporary"
            values.append({**common, **told, "outcome": outcome, **changed})
    column = "head" if rules.ordering is Ordering.STRICT else "newest"
    with ledger.engine.begin() as connection:
        connection.execute(SET, values)
        marks = [{"mark": case.mark, "number": trio[1]} for trio, case in zip(trios, wanted, strict=True)]
        own = "(SELECT entity_id FROM counterfoil.state WHERE number = :number)"
        connection.execute(text(f"UPDATE counterfoil.entity SET {column} = :mark WHERE id = {own}"), marks)
        standings = moves.lock(connection, numbers).standings
    ruled = set()
    for trio, case in zip(trios, wanted, strict=True):
        scheduled = case.newer is not None and case.newer[1]
        others = [Neighbour(1, standings[trio[0]]), Neighbour(3, standings[trio[2]], scheduled)]
        turn = ordering.turn(rules, 2, case.mark, others)
        if may_admit(rules, standings[trio[1]], now, revision=1, turn=turn):
            ruled.add(trio[1])
    asked = {trio[1] for trio in trios}
    candidates = [each for each in line.hand.candidates() if each.number in asked]
    assert set(line.hand.admit(*candidates).admitted) == ruled
    assert 10 < len(ruled) < len(asked)
