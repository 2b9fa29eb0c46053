"""Every query of a runbook, and of the page of alerts, runs on a real ledger and changes nothing."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path

from sqlalchemy import text

from counterfoil.ledger import sessions
from tests.support.ledgers import Bed, bulk_ledger

LEASE = timedelta(seconds=30)
DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
PAGES = [DEPLOY / "alerts.md", *sorted((DEPLOY / "runbooks").glob("*.md"))]
QUERIES = [
    (page.name, query)
    for page in PAGES
    for query in re.findall(r"^ *```sql\n(.*?)^ *```", page.read_text(), re.MULTILINE | re.DOTALL)
]


def test_every_query_of_a_runbook_runs_and_only_reads(ledger: Bed) -> None:
    assert len(QUERIES) >= 8
    bulk_ledger(ledger.engine, 200)
    with ledger.engine.connect() as connection:
        connection.execute(text("SET TRANSACTION READ ONLY"))
        for page, query in QUERIES:
            answer = connection.execute(text(query))
            assert answer.returns_rows, page
            names = set(answer.keys())
            assert not names & {"key", "value", "headers", "entity"}, f"{page} shows what may be personal: {names}"


OUTBOX, DUE, LEASES = (query for page, query in QUERIES if page == "alerts.md")


def test_the_figures_that_are_asked_every_minute_say_what_the_page_says(ledger: Bed) -> None:
    """On an empty ledger nothing is late and nobody is there; then a row waits, an operation is overdue, a lease holds."""
    assert ledger.rows(OUTBOX) == [{"seconds": 0}]
    assert (ledger.rows(DUE), ledger.rows(LEASES)) == ([], [])
    bulk_ledger(ledger.engine, 200)
    with ledger.engine.begin() as connection:
        connection.execute(
            text(
                "INSERT INTO counterfoil.outbox (shard, kind, type, revision, created_at)"
                " VALUES (0, 'state', 'bulk', 1, counterfoil.ledger_time() - interval '5 minutes')"
            )
        )
        for role in ("relay", "worker"):
            sessions.open_session(connection, role, "w", LEASE, {})
    assert 300 <= ledger.one(OUTBOX) < 3_600
    (queued,) = ledger.rows(DUE)
    assert (queued["state"], queued["count"]) == ("queued", 2)
    assert 3_000 < queued["overdue"] <= 3_700
    assert {row["role"]: row["count"] for row in ledger.rows(LEASES)} == {"relay": 1, "worker": 1}
    ledger.shift(2 * LEASE)
    assert ledger.rows(LEASES) == []
