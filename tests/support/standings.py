"""Standings and rules for the tests of decisions, and what a ledger holds after one. The pure counterpart of its statements."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import product

from counterfoil.core.decisions import Kept, Move
from counterfoil.core.outcomes import AttemptOutcome
from counterfoil.core.standing import REVIEW_WITHIN, Rules, Standing
from counterfoil.core.states import State

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)
ZERO = timedelta(0)

#: An outside effect with a probe, at a sink that keeps our key for an hour.
OUTSIDE = Rules(
    name="sync_customer",
    in_ledger=False,
    done_elsewhere=False,
    has_probe=True,
    receipt_confirms=False,
    version_guard=False,
    keyed=True,
    horizon=timedelta(hours=1),
    by_nature_unique=False,
    request_life=30 * SECOND,
    read_lag=5 * SECOND,
    send_grace=5 * SECOND,
    timeout=20 * SECOND,
    window=120 * SECOND,
    deadline=timedelta(hours=24),
    first=2 * SECOND,
    cap=timedelta(minutes=15),
    share=1.0,
    max_tries=8,
    money=False,
    outcome_within=None,
    review_within=REVIEW_WITHIN,
)
#: Every kind of type that a decision tells apart.
KINDS = {
    "probed, keyed": OUTSIDE,
    "probed, promises nothing": replace(OUTSIDE, keyed=False),
    "probed, version guard": replace(OUTSIDE, keyed=False, version_guard=True),
    "by nature": replace(OUTSIDE, horizon=None, by_nature_unique=True),
    "not probed, keyed": replace(OUTSIDE, has_probe=False),
    "not probed, keyed, money": replace(OUTSIDE, has_probe=False, money=True),
    "not probed, promises nothing": replace(OUTSIDE, has_probe=False, keyed=False),
    "the receipt confirms": replace(OUTSIDE, has_probe=False, receipt_confirms=True),
    "in the ledger": replace(OUTSIDE, has_probe=False, keyed=False, in_ledger=True, receipt_confirms=True),
    "done elsewhere": replace(OUTSIDE, keyed=False, done_elsewhere=True, outcome_within=timedelta(hours=6), max_tries=1),
}
RUNNING = Standing(
    number=1,
    state=State.RUNNING,
    sequence=2,
    attempt=1,
    tries_left=7,
    revision=1,
    generation=0,
    outcome=AttemptOutcome.OPEN,
    admitted_at=NOW - SECOND,
    attempt_until=NOW + 19 * SECOND,
    session=4,
)
#: Since when an attempt is doubtful: none; the latest itself; an earlier one under this key; an earlier one under an older key.
DOUBTS: tuple[tuple[datetime | None, tuple[int, int] | None], ...] = (
    (None, None),
    (NOW - SECOND, (1, 0)),
    (NOW - 60 * SECOND, (1, 0)),
    (NOW - 60 * SECOND, (0, 0)),
)


def standings() -> Iterator[Standing]:
    """Every state × outcome of the latest attempt × doubt × tries left × cancel × accepted risk."""
    outcomes = (None, *AttemptOutcome)
    for state, outcome, doubt, tries, cancel, risk in product(State, outcomes, DOUBTS, (0, 1, 7), (False, True), (False, True)):
        attempt = 0 if outcome is None else 3
        yield replace(
            RUNNING,
            state=state,
            attempt=attempt,
            outcome=outcome,
            tries_left=tries,
            doubtful_since=doubt[0],
            doubtful_key=doubt[1],
            unresolved=doubt[0] is not None,
            admitted_at=NOW - SECOND if attempt else None,
            cancel_asked=cancel,
            accepted_risk=risk,
        )


def admitted(standing: Standing, now: datetime) -> Standing:
    """After the admit statement: the attempt and its try are counted, an accepted risk is used up."""
    return replace(
        standing,
        state=State.RUNNING,
        sequence=standing.sequence + 1,
        attempt=standing.attempt + 1,
        tries_left=standing.tries_left - 1,
        outcome=AttemptOutcome.OPEN,
        admitted_at=now,
        accepted_risk=False,
    )


def after(standing: Standing, decision: Move | Kept | None) -> Standing:
    """After the statement that writes a decision; evidence and nothing change nothing here."""
    if not isinstance(decision, Move):
        return standing
    since, key, unresolved = standing.doubtful_since, standing.doubtful_key, standing.unresolved
    if decision.doubt:
        unresolved = True
        if since is None:
            since, key = standing.admitted_at, (standing.revision, standing.generation)
    if decision.doubt_over:
        since, key, unresolved = None, None, False
    if decision.resolved:
        unresolved = False
    return replace(
        standing,
        state=decision.to,
        sequence=standing.sequence + 1,
        outcome=decision.outcome,
        tries_left=standing.tries_left + decision.try_back + decision.granted,
        generation=standing.generation + decision.new_key,
        doubtful_since=since,
        doubtful_key=key,
        unresolved=unresolved,
        accepted_risk=standing.accepted_risk or decision.risk,
    )
