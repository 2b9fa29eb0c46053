"""`counterfoil dlq` on a real ledger: lists, groups, plans, corrections and acts; nobody is shown what is masked."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import text

from counterfoil import enqueue
from counterfoil.ledger import acts
from examples.export_report import Report, export_report
from examples.sync_customer import Customer, sync_customer
from tests.support.ledgers import Bed
from tests.support.planted import Planted
from tests.support.processes import CommandLine
from tests.support.quarantined import quarantined


@pytest.fixture
def line(command_line: CommandLine, ledger: Bed) -> CommandLine:
    """The command line with the examples as its operation types and no broker in reach."""
    command_line.settings |= {"operations": "examples.operations:OPERATIONS", "brokers": "127.0.0.1:1"}
    return command_line


def answered(line: CommandLine, *arguments: str, code: int = 0) -> Any:
    return json.loads(line.run("dlq", *arguments, "--json", code=code).stdout)


def refused(line: CommandLine, *arguments: str) -> str:
    return str(answered(line, *arguments, code=1)["error"]["code"])


def customers(ledger: Bed, planted: Planted, count: int, reason: str = "undecodable_value") -> list[UUID]:
    """Dead letters with a planted text in the one field that their contract tags."""
    return quarantined(ledger, sync_customer, (Customer(f"c-{n}", n, planted.payload) for n in range(count)), reason)


def state_of(ledger: Bed, operation: UUID) -> dict[str, Any]:
    query = "SELECT s.* FROM counterfoil.state s JOIN counterfoil.operation o USING (number) WHERE operation_id = :id"
    [row] = ledger.rows(query, id=operation)
    return row


def test_dead_letters_are_listed_by_page_and_grouped_by_cause(line: CommandLine, ledger: Bed, planted: Planted) -> None:
    """S12: one line a dead letter; 5 records read as two problems."""
    ids = customers(ledger, planted, 4)
    [report] = quarantined(ledger, export_report, [Report("r1", "2026-11")], "no_capable_worker")
    first = answered(line, "list", "--limit", "3")
    second = answered(line, "list", "--limit", "3", "--before", str(first["before"]))
    seen = [UUID(one["operation_id"]) for one in first["dead_letters"] + second["dead_letters"]]
    assert sorted(seen) == sorted([*ids, report])
    assert second["before"] is None
    groups = answered(line, "list", "--groups")
    assert groups["count"] == 5
    assert [(one["type"], one["reason"], one["count"]) for one in groups["groups"]] == [
        ("sync_customer", "undecodable_value", 4),
        ("export_report", "no_capable_worker", 1),
    ]
    assert len(answered(line, "list", "--type", "export_report")["dead_letters"]) == 1
    assert len(answered(line, "list", "--reason-code", "undecodable_value", "--since", "1h")["dead_letters"]) == 4
    assert answered(line, "list", "--until", "1h")["dead_letters"] == []
    assert len(answered(line, "list", "--entity", "c-2")["dead_letters"]) == 1


def test_one_is_shown_with_its_tagged_fields_masked_and_what_may_be_done(
    line: CommandLine, ledger: Bed, planted: Planted
) -> None:
    """S18: the planted payload is in a field that the contract tags; the fixture fails if it is seen."""
    [one] = customers(ledger, planted, 1)
    told = answered(line, "show", str(one))
    assert told["payload"]["email"] == "[contact]"
    assert told["payload"]["version"] == 0
    allowed = {each["act"]: each.get("reason", True) for each in told["allowed"]}
    assert allowed == {
        "replay": "nothing_changed",
        "replay --consumer NAME": True,
        "fix": True,
        "discard": True,
        "look_first": "nothing_in_doubt",
    }
    assert "24 h" in told["risk"]
    assert "not now (nothing_changed)" in line.run("dlq", "show", str(one)).stdout
    line.run("dlq", "show", str(one), "--raw", code=2)


def test_raw_bytes_are_an_act_with_its_reason(line: CommandLine, ledger: Bed) -> None:
    """S18: they are shown where somebody asked for them by role and reason, and nowhere else."""
    [one] = quarantined(ledger, export_report, [Report("r1", "2026-11")])
    told = answered(line, "show", str(one), "--raw", "--reason", "the producer asks")
    assert b"2026-11".hex() in told["raw_bytes"]["value"]
    assert ledger.rows("SELECT action, subject, result FROM counterfoil.act") == [
        {"action": "reveal", "subject": str(one), "result": "shown"}
    ]


def test_a_selection_without_a_filter_or_with_nothing_in_it_is_refused(line: CommandLine, ledger: Bed, planted: Planted) -> None:
    customers(ledger, planted, 1)
    assert refused(line, "plan", "--reason", "all of them") == "filter_empty"
    assert refused(line, "plan", "--type", "nothing", "--reason", "none") == "nothing_selected"
    assert ledger.one("SELECT count(*) FROM counterfoil.plan") == 0


def test_a_plan_is_frozen_and_what_fails_later_is_not_in_it(line: CommandLine, ledger: Bed, planted: Planted) -> None:
    """D71: bounded by what was there; the digest is over exactly that."""
    customers(ledger, planted, 3)
    plan = answered(line, "plan", "--type", "sync_customer", "--consumer", "worker 2", "--reason", "fixed the reader")
    assert (plan["selected"], plan["status"], len(plan["digest"])) == (3, "frozen", 64)
    [sent] = plan["preview"]["send"]
    assert (sent["count"], sent["topic"]) == (3, f"{ledger.name}.sync_customer.commands")
    quarantined(ledger, sync_customer, [Customer("later", 1, "a@b.example")])
    done = answered(line, "replay", str(plan["id"]), "--reason", "go", "--no-canary")
    assert (done["end"], done["sent"]) == ("done", 3)
    assert ledger.one("SELECT count(*) FROM counterfoil.state WHERE state = 'quarantined'") == 1
    again = answered(line, "replay", str(plan["id"]), "--reason", "again")
    assert (again["end"], again["sent"]) == ("nothing_left", 0)


def test_a_replay_grants_new_tries_keeps_the_key_and_writes_its_record_once(
    line: CommandLine, ledger: Bed, planted: Planted
) -> None:
    """S13, S22, D76, D74: to its type's own topic, whatever a header says."""
    [one] = customers(ledger, planted, 1)
    before = state_of(ledger, one)
    assert refused(line, "replay", "7", "--reason", "go") == "unknown_plan"
    plan = answered(line, "plan", "--id", str(one), "--reason", "look")
    assert plan["preview"] == {"send": [], "refused": {"nothing_changed": 1}}
    plan = answered(line, "plan", "--id", str(one), "--consumer", "worker 2", "--reason", "new worker")
    answered(line, "replay", str(plan["id"]), "--reason", "go", "--no-canary")
    after = state_of(ledger, one)
    assert (after["state"], after["generation"], after["revision"]) == ("queued", before["generation"], 1)
    assert after["tries_left"] == 8
    assert after["sequence"] == before["sequence"] + 1
    rows = ledger.rows("SELECT kind, type, id FROM counterfoil.outbox WHERE kind = 'command' ORDER BY id")
    assert rows[-1] == {"kind": "command", "type": "sync_customer", "id": after["sent_id"]}
    [told] = ledger.rows("SELECT detail FROM counterfoil.event WHERE kind = 'replayed'")
    assert told["detail"]["consumer"] == "worker 2"
    assert told["detail"]["why"] == "go"


def test_a_correction_is_a_new_revision_that_fits_the_contract_and_leaves_the_identity(
    line: CommandLine, ledger: Bed, planted: Planted
) -> None:
    """S21, S18: refused by path and never by value; the difference is masked."""
    [one] = customers(ledger, planted, 1)
    patch = line.folder / "patch.json"

    def fix(changes: dict[str, Any], *more: str, code: int = 0) -> Any:
        patch.write_text(json.dumps(changes))
        return answered(line, "fix", str(one), "--patch", str(patch), "--reason", "ticket 4711", *more, code=code)

    assert fix({"id": "another"}, code=1)["error"]["code"] == "identity_changed"
    assert fix({"version": 9}, code=1)["error"]["code"] == "identity_changed"
    assert fix({"email": 7}, code=1)["error"]["code"] == "wrong_type"
    assert fix({"mail": "x"}, code=1)["error"]["code"] == "unknown_field"
    assert fix({"email": planted.payload}, code=1)["error"]["code"] == "no_difference"
    assert fix({"email": "a"}, "--revision", "2", code=1)["error"]["code"] == "somebody_was_first"
    patch.write_text("{")
    line.run("dlq", "fix", str(one), "--patch", str(patch), "--reason", "r", code=2)
    done = fix({"email": "right@example.org"}, "--revision", "1")
    assert done["revision"] == 2
    assert done["changed"] == [{"path": "email", "before": "[masked]", "after": "[masked]"}]
    assert fix({"email": "other@example.org"}, "--revision", "1", code=1)["error"]["code"] == "somebody_was_first"
    told = answered(line, "show", str(one))
    assert [each["revision"] for each in told["revisions"]] == [1, 2]
    assert told["state"] == "quarantined"
    assert "right@example.org" not in json.dumps(told)
    plan = answered(line, "plan", "--id", str(one), "--reason", "corrected")
    answered(line, "replay", str(plan["id"]), "--reason", "corrected", "--no-canary")
    assert (state_of(ledger, one)["state"], state_of(ledger, one)["revision"]) == ("queued", 2)
    with ledger.engine.begin() as connection:  # the corrected content is this operation, and so is the first
        assert enqueue(connection, sync_customer, Customer("c-0", 0, "right@example.org")) == one
        assert enqueue(connection, sync_customer, Customer("c-0", 0, planted.payload)) == one


def test_a_dead_letter_in_doubt_can_only_be_looked_up(line: CommandLine, ledger: Bed, planted: Planted) -> None:
    """S10, S11: not replayed, forced, corrected or discarded."""
    [one] = customers(ledger, planted, 1)
    with ledger.engine.begin() as connection:
        connection.execute(
            text(
                """UPDATE counterfoil.state SET attempt = 1, outcome = 'applied', doubtful_since = counterfoil.ledger_time(),
                doubtful_revision = 1, doubtful_generation = 0, admitted_at = counterfoil.ledger_time()"""
            )
        )
    plan = answered(line, "plan", "--id", str(one), "--force", "--reason", "sure")
    assert plan["preview"]["refused"] == {"may_have_been_applied": 1}
    done = answered(line, "replay", str(plan["id"]), "--reason", "sure", "--no-canary")
    assert (done["sent"], done["refused"]) == (0, {"may_have_been_applied": 1})
    assert answered(line, "discard", str(one), "--reason", "gone", code=1)["refused"] == {"may_have_been_applied": 1}
    patch = line.folder / "patch.json"
    patch.write_text('{"email": "a@b.example"}')
    assert refused(line, "fix", str(one), "--patch", str(patch), "--reason", "r") == "may_have_been_applied"
    assert answered(line, "look-first", str(one), "--reason", "ask the sink")["sent"] == 1
    assert state_of(ledger, one)["state"] == "awaiting_confirmation"


def test_what_is_discarded_is_not_applicable_and_leaves_the_list(line: CommandLine, ledger: Bed, planted: Planted) -> None:
    """S3, S13: with its reason, for one and for a plan."""
    ids = customers(ledger, planted, 3)
    assert answered(line, "discard", str(ids[0]), "--reason", "the customer left")["sent"] == 1
    plan = answered(line, "plan", "--type", "sync_customer", "--reason", "the rest")
    assert answered(line, "discard", "--plan", str(plan["id"]), "--reason", "the rest")["sent"] == 2
    assert {state_of(ledger, one)["state"] for one in ids} == {"not_applicable"}
    assert answered(line, "list")["dead_letters"] == []
    assert answered(line, "discard", str(ids[0]), "--reason", "again", code=1)["error"]["code"] == "nothing_selected"
    line.run("dlq", "discard", "--reason", "none named", code=2)


def test_a_stopped_plan_sends_nothing_more(line: CommandLine, ledger: Bed, planted: Planted) -> None:
    customers(ledger, planted, 2)
    plan = str(answered(line, "plan", "--type", "sync_customer", "--consumer", "w", "--reason", "r")["id"])
    assert answered(line, "stop", plan, "--reason", "wrong ones")["result"] == "stopped"
    assert refused(line, "replay", plan, "--reason", "go") == "plan_stopped"
    assert answered(line, "stop", plan, "--reason", "again", code=1)["result"] == "too_late"
    assert [one["status"] for one in answered(line, "plans")["plans"]] == ["stopped"]


def test_an_export_is_masked_and_an_act(line: CommandLine, ledger: Bed, planted: Planted) -> None:
    """S18: JSON lines and CSV; no cell begins like a formula."""
    customers(ledger, planted, 3)
    file = line.folder / "letters.jsonl"
    assert answered(line, "export", "--reason", "for the producer", "--output", str(file))["written"] == 3
    read = [json.loads(each) for each in file.read_text().splitlines()]
    assert {one["payload"]["email"] for one in read} == {"[contact]"}
    table = line.run("dlq", "export", "--reason", "for the producer", "--format", "csv").stdout
    assert len(table.splitlines()) == 4
    assert [one["action"] for one in ledger.rows("SELECT action FROM counterfoil.act")] == ["export", "export"]
    line.run("dlq", "export", "--reason", "r", "--json", code=2)


def test_every_act_is_kept_with_who_and_why_in_one_chain(line: CommandLine, ledger: Bed, planted: Planted) -> None:
    """S15."""
    [one] = customers(ledger, planted, 1)
    plan = str(answered(line, "plan", "--id", str(one), "--consumer", "w", "--reason", "why plan")["id"])
    answered(line, "replay", plan, "--reason", "why replay", "--no-canary")
    told = answered(line, "acts")["acts"]
    assert [(each["action"], each["result"], each["reason"]) for each in told] == [
        ("replay", "done", "why replay"),
        ("replay", "begun", "why replay"),
        ("plan", "frozen", "why plan"),
    ]
    assert {each["actor"] for each in told} == {ledger.one("SELECT session_user")}
    assert answered(line, "acts", "--verify")["ok"] is True
    with ledger.engine.begin() as connection:
        connection.execute(text("UPDATE counterfoil.act SET result = 'failed' WHERE id = 2"))
        assert acts.verify(connection).broken == 2
    assert answered(line, "acts", "--verify", code=1)["broken"] == 2
