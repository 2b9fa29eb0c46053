"""`counterfoil types list` and `policy show`: in processes, against a real ledger and without one."""

from __future__ import annotations

import json
from typing import Any

import pytest
from sqlalchemy import text

from counterfoil import enqueue
from counterfoil.ledger.tallying import Unfinished, unfinished
from examples.send_mail import Mail, send_mail
from examples.sync_customer import Customer, sync_customer
from tests.support.ledgers import Bed, bulk_ledger
from tests.support.plans import explained
from tests.support.processes import CommandLine

AWAY = "postgresql+psycopg://127.0.0.1:1/nowhere"


@pytest.fixture
def line(command_line: CommandLine, ledger: Bed) -> CommandLine:
    """The command line with the examples as its operation types and no broker in reach."""
    command_line.settings |= {"operations": "examples.operations:OPERATIONS", "brokers": "127.0.0.1:1"}
    return command_line


def answered(line: CommandLine, *arguments: str, code: int | None = 0) -> Any:
    return json.loads(line.run(*arguments, "--json", code=code).stdout)


def test_the_inventory_counts_what_is_open_and_in_review_riskiest_first(line: CommandLine, ledger: Bed) -> None:
    with ledger.engine.begin() as connection:
        for number in range(3):
            enqueue(connection, sync_customer, Customer("452", number, "a@b.c"))
        enqueue(connection, send_mail, Mail("m-1", "a@b.c", "welcome"))
        connection.execute(
            text(
                "UPDATE counterfoil.state SET state = 'manual_review' WHERE number ="
                " (SELECT number FROM counterfoil.operation WHERE type = 'send_mail')"
            )
        )
    bulk_ledger(ledger.engine, 10, type_name="gone")
    found = answered(line, "types", "list")
    assert found["counts_unknown"] is None
    counts = {one["name"]: (one["open"], one["in_review"], one["declared"]) for one in found["types"]}
    assert (counts["send_mail"], counts["sync_customer"]) == ((1, 1, True), (3, 0, True))
    assert (counts["charge_card"], counts["gone"]) == ((0, 0, True), (1, 0, False))
    names = [one["name"] for one in found["types"]]
    assert names[:4] == ["charge_card", "refund_charge", "send_mail", "adopt_legacy_job"]
    assert names[-2:] == ["upsert_projection", "gone"]
    said = line.run("types", "list").stdout
    assert "not declared" in said
    assert "texts of send_mail: missing: effect, truth, evidence" in said


def test_the_inventory_as_markdown_is_a_table_of_as_many_columns_in_each_row(line: CommandLine) -> None:
    rows = line.run("types", "list", "--markdown").stdout.splitlines()
    assert {row.count(" |") for row in rows} == {10}
    assert len(rows) == 2 + 7
    assert any(
        "| charge_card | team-pay | psp | money | probe | by key, 24 hours | observe | 0 | 0 | all there |" in row for row in rows
    )
    line.run("types", "list", "--markdown", "--json", code=2)


def test_without_the_database_everything_but_the_counts_is_shown(line: CommandLine) -> None:
    line.settings |= {"database": AWAY}
    found = answered(line, "types", "list")
    assert found["counts_unknown"]["code"] == "database_unreachable"
    assert {one["open"] for one in found["types"]} == {None}
    assert "counts unknown" in line.run("types", "list").stdout
    page = line.run("policy", "show", "charge_card").stdout
    assert "limits, pauses and counts are unknown" in page
    assert "The card was charged once" in page


def test_a_page_shows_what_was_written_what_is_missing_and_what_holds_now(line: CommandLine) -> None:
    answered(line, "sinks", "limit", "psp", "--concurrency", "2", "--reason", "the vendor asked")
    answered(line, "pause", "--type", "charge_card", "--reason", "fraud check")
    page = line.run("policy", "show", "charge_card").stdout
    for said in (
        "# charge_card",
        "The card was charged once",
        "- compared at the sink: amount, currency",
        "- divergent: a person decides",
        "- the sink keeps a key: 24 hours",
        "- tries: at most 5",
        "- limits of psp: 2 in flight, no rate, set by hand",
        "- paused: type charge_card, by postgres: fraud check",
    ):
        assert said in page
    assert "Missing" not in page
    mail = line.run("policy", "show", "send_mail").stdout
    assert mail.count("**Missing**") == 3
    assert "- an answer that was lost: a person decides: nothing can be asked" in mail
    told = answered(line, "policy", "show", "send_mail")
    assert told["texts_missing"] == ["effect", "truth", "evidence"]
    assert answered(line, "policy", "show", "sync_custmer", code=1)["error"]["code"] == "unknown_type"


def test_check_notes_the_texts_that_are_missing(line: CommandLine) -> None:
    found = {one["name"]: one for one in answered(line, "check", code=None)["findings"]}
    assert found["texts of send_mail"]["mark"] == "note"
    assert "effect, truth, evidence" in found["texts of send_mail"]["what"]
    assert "texts of charge_card" not in found


def test_counting_reads_the_open_rows_only_however_many_are_settled(ledger: Bed) -> None:
    bulk_ledger(ledger.engine, 60_000)
    with explained(ledger.engine) as plans, ledger.engine.connect() as connection:
        assert unfinished(connection) == {"bulk": Unfinished(600, 0, 0)}
    (plan,) = plans.of("in_review")
    assert plan.scanned() == set()
    assert plan.rows() <= 600
