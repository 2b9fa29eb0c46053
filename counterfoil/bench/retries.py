"""Retries that fall due together: 50,000 at one second, beside fresh work that goes on.

The fresh work is measured twice in one run, by the same callers on the same processes: without retries, and while they are sent
again, admitted and settled. What counts is how many fresh operations were settled in as many seconds.
"""

from __future__ import annotations

import time
from datetime import timedelta
from typing import NamedTuple

from sqlalchemy import TextClause, text

from counterfoil.bench.callers import Pace, calling
from counterfoil.bench.enqueueing import fill
from counterfoil.bench.gates import Bar, Gauged
from counterfoil.bench.stage import Bed, stage
from counterfoil.demo.processes import Process

RETRIES = 50_000
SECONDS = 12  #: of fresh work, each time
FRESH = Pace(callers=1, per_s=500, operations=500 * SECONDS)
AHEAD = 500_000_000  #: numbers that no retry has
MOST_SLOWED = 0.2  #: share of the fresh work

PUT_OFF = text("""UPDATE counterfoil.state SET due_at = due_at + interval '1 hour', not_before = due_at + interval '1 hour'""")
#: As a first try that was temporary leaves them, all with one due time.
FAIL = text("""WITH due AS (SELECT counterfoil.ledger_time() + interval '2 seconds' AS at)
    UPDATE counterfoil.state SET state = 'retry_wait', sequence = 2, attempt = 1, tries_left = tries_left - 1,
        outcome = 'temporary', due_at = due.at, not_before = due.at, reason = 'temporary_failure', sent_at = NULL, sent_id = NULL
    FROM due WHERE number <= :last""")
SETTLED = text("SELECT count(*) FROM counterfoil.event WHERE kind = 'result_saved' AND number > :after AND at <= :until")
BEGUN = text("SELECT min(created_at) FROM counterfoil.operation WHERE number > :after")
NEWEST = text("SELECT COALESCE(max(number), 0) FROM counterfoil.operation")
#: Each second's share of the second admissions.
ADMITTED = text("""SELECT count(*) FROM counterfoil.event WHERE kind = 'admitted' AND attempt = 2
    GROUP BY date_trunc('second', at) ORDER BY 1 DESC""")
DONE = text("SELECT count(*) FROM counterfoil.state WHERE state = 'confirmed' AND number > :after")
OPEN = text("SELECT count(*) FROM counterfoil.state WHERE closed_at IS NULL AND number <= :last")
RETRIED = text("SELECT extract(epoch FROM max(at) - min(at)) FROM counterfoil.event WHERE kind = 'admitted' AND attempt = 2")


class Fresh(NamedTuple):
    """Fresh operations of one stretch: settled within its seconds, and how long until the last one was."""

    settled: int
    seconds: float


def gauge() -> Gauged:
    """Measures, with a relay and a worker of their own settings."""
    with stage() as servers, servers.bed("retries", "BATCHES") as bed:
        fill(bed, 0, RETRIES)
        last = _number(bed, NEWEST)
        with bed.engine.begin() as connection:
            connection.execute(PUT_OFF)
            connection.execute(text("DELETE FROM counterfoil.outbox"))
        with bed.running("relay"), bed.running("worker") as process:
            _fresh(bed, process, 0)  # lets both start
            alone = _fresh(bed, process, 1)
            with bed.engine.begin() as connection:
                connection.execute(FAIL, {"last": last})
            beside = _fresh(bed, process, 2)
            bed.wait(process, lambda: _number(bed, OPEN, last=last) == 0, "the last retry", every=0.2)
        with bed.engine.connect() as connection:
            most = connection.execute(ADMITTED).scalars().all()
            took = float(connection.execute(RETRIED).scalar_one())
    slowed = max(0.0, 1 - beside.settled / alone.settled)
    bars = (
        Bar("retries admitted again", sum(most), RETRIES, "operations", at_least=True),
        Bar("fresh work slowed by", round(slowed, 4), MOST_SLOWED, "of it", at_least=False),
    )
    detail = {
        "fresh_per_s": FRESH.per_s,
        "fresh_alone": alone._asdict(),
        "fresh_beside": beside._asdict(),
        "retries_took_s": round(took, 1),
        "retries_most_in_a_second": most[0],
    }
    return Gauged(bars, detail)


def _fresh(bed: Bed, process: Process, number: int) -> Fresh:
    """One stretch of fresh work, up to its last operation."""
    after = _number(bed, NEWEST)
    with calling(bed.url, FRESH, AHEAD + number * FRESH.operations) as callers:
        for caller in callers:
            caller.result()
    began = time.monotonic()
    with bed.engine.connect() as connection:
        first = connection.execute(BEGUN, {"after": after}).scalar_one()
    bed.wait(process, lambda: _number(bed, DONE, after=after) >= FRESH.operations, "the fresh work", every=0.1)
    with bed.engine.connect() as connection:
        until = first + timedelta(seconds=SECONDS)
        settled = connection.execute(SETTLED, {"after": after, "until": until}).scalar_one()
    return Fresh(settled, round(SECONDS + time.monotonic() - began, 1))


def _number(bed: Bed, statement: TextClause, **parameters: int) -> int:
    with bed.engine.connect() as connection:
        return int(connection.execute(statement, parameters).scalar_one())
