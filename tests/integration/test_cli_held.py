"""`counterfoil held` on a real ledger: lists, groups, one, and letting go by hand; nobody is shown what is masked."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID, uuid4

import pytest
from sqlalchemy import text

from counterfoil import enqueue_many
from counterfoil.core.reasons import Reason
from counterfoil.ledger.engine import in_transaction
from counterfoil.ledger.names import ledger_of
from counterfoil.ledger.raw_records import Raw, cause_of, keep
from counterfoil.reporting import raw_words
from counterfoil.schemas.envelope import Command, command_headers, source
from examples.sync_customer import Customer, sync_customer
from tests.integration.test_held import WEEK, registered
from tests.integration.test_roles import logins
from tests.support.ledgers import Bed
from tests.support.planted import Planted
from tests.support.processes import CommandLine

__all__ = ["logins"]  # a fixture
TYPE = sync_customer.name


@pytest.fixture
def line(command_line: CommandLine, ledger: Bed) -> CommandLine:
    command_line.settings |= {"operations": "examples.operations:OPERATIONS", "brokers": "127.0.0.1:1"}
    return command_line


def answered(line: CommandLine, *arguments: str, code: int = 0, login: str | None = None) -> Any:
    settings: dict[str, Any] = {} if login is None else {"database": login}
    return json.loads(line.run("held", *arguments, "--json", code=code, **settings).stdout)


def refused(line: CommandLine, *arguments: str) -> str:
    return str(answered(line, *arguments, code=1)["error"]["code"])


def held(ledger: Bed, planted: Planted, count: int, strangers: int = 0) -> list[UUID]:
    """So many operations whose own records are held, and records of operations that the ledger has not; the causes."""
    with ledger.engine.begin() as connection:
        enqueue_many(connection, sync_customer, [Customer(f"c-{n}", n, planted.payload) for n in range(count)])
        connection.execute(text("DELETE FROM counterfoil.outbox"))
        connection.execute(text("UPDATE counterfoil.state SET due_at = due_at + interval '7 days'"))
    rows = ledger.rows("SELECT number, operation_id, value FROM counterfoil.operation JOIN counterfoil.payload USING (number)")

    def unit(connection: Any) -> list[UUID]:
        of = ledger_of(connection)
        causes = []
        for place in range(count + strangers):
            known = rows[place] if place < count else {"number": 0, "operation_id": uuid4(), "value": rows[0]["value"]}
            headers = command_headers(source(of.name), Command(known["number"] or 999, known["operation_id"], TYPE, 1, "key", 1))
            reason = Reason.SCHEMA_NOT_READ if known["number"] else Reason.UNKNOWN_OPERATION_RECORD
            topic = f"{of.name}.{TYPE}.commands"
            raw = Raw(topic, 0, place, 1, b"k", bytes(known["value"]), headers, TYPE, known["number"] or None, reason)
            keep(connection, of, [raw], held=True, due_in=WEEK, words=raw_words)
            causes.append(cause_of(of, raw))
        return causes

    return in_transaction(ledger.engine, unit)


def statuses(ledger: Bed) -> list[str]:
    return [row["status"] for row in ledger.rows("SELECT status FROM counterfoil.raw_record ORDER BY record_offset")]


def test_held_records_are_listed_by_page_and_grouped_by_reason(line: CommandLine, ledger: Bed, planted: Planted) -> None:
    """S5, L1: those without an operation are said where exceptions are."""
    causes = held(ledger, planted, 3, strangers=2)
    first = answered(line, "list", "--limit", "4")
    second = answered(line, "list", "--limit", "4", "--before", first["before"])
    seen = first["held"] + second["held"]
    assert {UUID(one["cause"]) for one in seen} == set(causes)
    assert second["before"] is None
    assert {(one["type"], one["topic"], one["partition"]) for one in seen} == {(TYPE, f"{ledger.name}.{TYPE}.commands", 0)}
    assert sum(one["operation_id"] is None for one in seen) == 2
    assert all(0 <= one["age_seconds"] < 600 for one in seen)
    groups = answered(line, "list", "--groups")
    assert (groups["count"], groups["without_operation"]) == (5, 2)
    assert [(one["reason"], one["count"]) for one in groups["groups"]] == [
        ("schema_not_read", 3),
        ("unknown_operation_record", 2),
    ]
    assert len(answered(line, "list", "--reason-code", "schema_not_read", "--since", "1h")["held"]) == 3
    assert answered(line, "list", "--type", "another")["held"] == []
    assert refused(line, "list", "--before", str(uuid4())) == "unknown_held"
    assert "none: it stays held" in line.run("held", "list").stdout
    told = line.run("operations", "list").stdout
    assert "2 held records without an operation" in told
    found = [
        each for each in json.loads(line.run("check", "--json", code=None).stdout)["findings"] if each["name"] == "held records"
    ]
    assert [each["mark"] for each in found] == ["note", "note"]
    operation = next(one["operation_id"] for one in seen if one["operation_id"])
    assert "held (schema_not_read)" in json.loads(line.run("operations", "show", operation, "--json").stdout)["waiting"]


def test_one_is_shown_with_its_tagged_fields_masked_and_raw_bytes_are_an_act(
    line: CommandLine, ledger: Bed, planted: Planted
) -> None:
    """S18: as a dead letter is shown."""
    cause, stranger = held(ledger, planted, 1, strangers=1)
    told = answered(line, "show", str(cause))
    assert (told["payload"]["email"], told["payload"]["version"], told["capable"]) == ("[contact]", 0, False)
    assert told["allowed"] == [{"act": "release", "allowed": True}]
    [other] = answered(line, "show", str(stranger))["allowed"]
    assert other["reason"] == "unknown_operation_record"
    assert "not now (unknown_operation_record)" in line.run("held", "show", str(stranger)).stdout
    assert answered(line, "show", told["operation_id"])["cause"] == str(cause), "by its operation too"
    line.run("held", "show", str(cause), "--raw", code=2)
    shown = answered(line, "show", str(stranger), "--raw", "--reason", "the producer asks")["raw_bytes"]
    assert {one["name"] for one in shown["headers"]} >= {"ce_id", "cf_number"}
    assert ledger.rows("SELECT action, subject FROM counterfoil.act") == [{"action": "reveal", "subject": str(stranger)}]
    assert refused(line, "show", str(uuid4())) == "unknown_held"


def test_a_person_lets_records_go_each_once_and_those_without_an_operation_stay(
    line: CommandLine, ledger: Bed, planted: Planted
) -> None:
    """S5, S13: an act when it begins and when it ends; what no live worker can do is said."""
    causes = held(ledger, planted, 3, strangers=1)
    assert refused(line, "release", "--reason", "all of them") == "filter_empty"
    assert refused(line, "release", "--type", "nothing", "--reason", "none") == "nothing_held"
    assert refused(line, "release", str(uuid4()), "--reason", "who is it") == "unknown_held"
    done = answered(line, "release", str(causes[0]), "--reason", "worker 2 comes")
    assert (done["let_go"], done["incapable"], done["refused"]) == (1, 1, {})
    assert refused(line, "release", str(causes[0]), "--reason", "again") == "not_held"
    registered_for_customers(ledger)
    done = answered(line, "release", "--type", TYPE, "--reason", "worker 2 is there")
    assert (done["let_go"], done["incapable"], done["refused"]) == (2, 0, {"unknown_operation_record": 1})
    assert statuses(ledger) == ["released", "released", "released", "held"]
    assert ledger.one("SELECT count(*) FROM counterfoil.state WHERE due_at <= counterfoil.ledger_time()") == 3
    done = answered(line, "release", "--type", TYPE, "--reason", "the last", code=1)
    assert done["refused"] == {"unknown_operation_record": 1}
    acts = ledger.rows("SELECT action, subject, reason, result FROM counterfoil.act ORDER BY id")
    assert [(each["reason"], each["result"]) for each in acts[2:4]] == [
        ("worker 2 is there", "begun"),
        ("worker 2 is there", "done"),
    ]
    assert {(each["action"], each["subject"]) for each in acts} == {("release", "held records")}


def registered_for_customers(ledger: Bed) -> None:
    registered(ledger, None)
    with ledger.engine.begin() as connection:
        capable = "jsonb_build_object('sync_customer', 2)"
        connection.execute(text(f"UPDATE counterfoil.worker SET capable = {capable}"))


def test_a_release_killed_half_way_lets_nothing_go_twice(line: CommandLine, ledger: Bed, planted: Planted) -> None:
    """D71: what is not committed is still held, and the same again goes on."""
    held(ledger, planted, 3)
    killed = line.start("held", "release", "--type", TYPE, "--reason", "go", failpoints="held.before_release_commit=kill")
    assert killed.wait(60) < 0
    assert statuses(ledger) == ["held"] * 3
    assert answered(line, "release", "--type", TYPE, "--reason", "go on")["let_go"] == 3


def test_a_reader_sees_why_and_no_byte_and_an_operator_lets_go(
    line: CommandLine, ledger: Bed, planted: Planted, logins: dict[str, str]
) -> None:
    """S13, S18: by role; the database itself refuses the rest."""
    [cause, _] = held(ledger, planted, 1, strangers=1)
    assert answered(line, "list", "--groups", login=logins["reader"])["count"] == 2
    told = answered(line, "show", str(cause), login=logins["reader"])
    assert (told["payload"], told["capable"]) == (None, None)
    release = ("release", "--type", TYPE, "--reason", "go")
    assert answered(line, *release, code=1, login=logins["reader"])["error"]["code"] == "role_needed"
    done = answered(line, *release, login=logins["operator"])
    assert (done["let_go"], done["refused"]) == (1, {"unknown_operation_record": 1})
