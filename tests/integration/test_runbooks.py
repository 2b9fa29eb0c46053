"""Every query of a runbook, and of the page of alerts, runs on a real ledger and changes nothing."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from sqlalchemy import text

from tests.support.ledgers import Bed, bulk_ledger

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


@pytest.mark.parametrize("query", [query for page, query in QUERIES if page == "alerts.md"], ids=["outbox", "due", "leases"])
def test_a_query_that_is_asked_every_minute_answers_on_an_empty_ledger(ledger: Bed, query: str) -> None:
    with ledger.engine.connect() as connection:
        connection.execute(text(query)).all()
