"""`counterfoil pause`, `resume` and `sinks`, and what `check` says of them: in processes, against a real ledger."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import text

from counterfoil.core.breaker import Habits, Heard
from counterfoil.ledger import acts
from counterfoil.ledger.limits import Ask, Key, enter, exchange
from counterfoil.ledger.sessions import open_session
from tests.support.ledgers import Bed
from tests.support.processes import CommandLine

LEASE = timedelta(seconds=30)


@pytest.fixture
def line(command_line: CommandLine, ledger: Bed) -> CommandLine:
    """The command line with the examples as its operation types and no broker in reach."""
    command_line.settings |= {"operations": "examples.operations:OPERATIONS", "brokers": "127.0.0.1:1"}
    return command_line


def answered(line: CommandLine, *arguments: str, code: int | None = 0) -> Any:
    return json.loads(line.run(*arguments, "--json", code=code).stdout)


def down(ledger: Bed, name: str) -> None:
    """A living worker's exchange that finds the sink down, with calls in flight."""
    with ledger.engine.begin() as connection:
        session = open_session(connection, "worker", "host:1", LEASE, {})
        enter(connection, [Key(name)])
        ask = Ask(Key(name), 8, None, 3, 9, 0, Heard(10))
        exchange(connection, session, [ask], Habits(10, LEASE))


def notes(line: CommandLine) -> dict[str, str]:
    found = answered(line, "check", code=None)["findings"]
    return {one["name"]: one["what"] for one in found if one["mark"] == "note"}


def test_a_type_is_paused_shown_and_resumed(line: CommandLine, ledger: Bed) -> None:
    told = answered(line, "pause", "--type", "sync_customer", "--reason", "the CRM moves house", "--for", "2h")
    assert (told["kind"], told["name"], told["paused"]) == ("type", "sync_customer", True)
    (paused,) = answered(line, "sinks", "list")["paused"]
    assert (paused["reason"], paused["actor"], paused["act"]) == ("the CRM moves house", "postgres", told["act"])
    assert paused["until"] > paused["at"]
    assert "the CRM moves house" in notes(line)["type sync_customer"]
    said = line.run("sinks", "list").stdout
    assert "paused: type sync_customer by postgres" in said
    answered(line, "resume", "--type", "sync_customer", "--reason", "it has moved")
    assert answered(line, "sinks", "list")["paused"] == []
    assert "type sync_customer" not in notes(line)
    with ledger.engine.connect() as connection:
        assert [one.action for one in acts.read(connection)] == ["resume", "pause"]


def test_a_sink_is_paused_with_all_its_types(line: CommandLine) -> None:
    answered(line, "pause", "--sink", "psp", "--reason", "fraud check")
    found = {one["name"]: one for one in answered(line, "sinks", "list")["sinks"]}
    assert found["psp"]["paused"]["reason"] == "fraud check"
    assert "charge_card" in found["psp"]["types"]
    assert found["crm"]["paused"] is None
    (shown,) = answered(line, "sinks", "show", "psp")["sinks"]
    assert shown["paused"]["until"] is None


def test_what_is_not_there_or_not_paused_is_refused_by_name(line: CommandLine) -> None:
    for arguments, code, error in (
        (("pause", "--type", "sync_custmer", "--reason", "x"), 1, "unknown_type"),
        (("pause", "--sink", "sync_customer", "--reason", "x"), 1, "unknown_sink"),
        (("resume", "--type", "sync_customer", "--reason", "x"), 1, "not_paused"),
        (("pause", "--type", "sync_customer", "--reason", " "), 1, "reason_missing"),
        (("sinks", "show", "nowhere"), 1, "unknown_sink"),
        (("sinks", "limit", "nowhere", "--reason", "x", "--concurrency", "1"), 1, "unknown_sink"),
    ):
        assert answered(line, *arguments, code=code)["error"]["code"] == error, arguments
    for usage in (
        ("pause", "--reason", "x"),
        ("pause", "--reason", "x", "--type", "a", "--sink", "b"),
        ("pause", "--reason", "x", "--type", "sync_customer", "--for", "0s"),
        ("sinks", "limit", "psp", "--reason", "x"),
        ("sinks", "limit", "psp", "--reason", "x", "--as-declared", "--concurrency", "1"),
        ("sinks", "limit", "psp", "--reason", "x", "--concurrency", "0"),
        ("sinks", "limit", "psp", "--reason", "x", "--concurrency", "1", "--per-second", "-1"),
    ):
        line.run(*usage, code=2)


def test_a_sink_that_is_down_is_shown_with_its_breaker_and_its_outage(line: CommandLine, ledger: Bed) -> None:
    down(ledger, "psp")
    (shown,) = answered(line, "sinks", "show", "psp")["sinks"]
    assert (shown["breaker"]["position"], shown["breaker"]["failures"]) == ("open", 10)
    assert (shown["in_flight"], shown["waiting"], shown["workers"]) == (3, 6, 1)
    told = answered(line, "sinks", "show", "psp")
    assert [one["closed_at"] for one in told["outages"]] == [None]
    assert [(one["worker"], one["slots"], one["in_use"]) for one in told["workers"]] == [("host:1", 8, 3)]
    assert "its breaker is open" in notes(line)["sink psp"]
    said = line.run("sinks", "show", "psp").stdout
    assert "down since" in said
    assert "3 of 8" in said


def test_limits_that_a_person_sets_win_and_check_lists_the_difference(line: CommandLine, ledger: Bed) -> None:
    found = {one["name"]: one for one in answered(line, "sinks", "list")["sinks"]}
    assert (found["psp"]["concurrency"], found["psp"]["per_second"], found["psp"]["set_by_hand"]) == (8, 20.0, False)
    assert "limits of psp" not in notes(line)
    answered(line, "sinks", "limit", "psp", "--concurrency", "2", "--reason", "the vendor asked")
    (shown,) = answered(line, "sinks", "show", "psp")["sinks"]
    assert (shown["concurrency"], shown["per_second"], shown["set_by_hand"]) == (2, None, True)
    assert shown["declared"] == {"concurrency": 8, "per_second": 20.0}
    assert "2 in flight" in notes(line)["limits of psp"]
    answered(line, "sinks", "limit", "psp", "--as-declared", "--reason", "back")
    assert "limits of psp" not in notes(line)


def test_a_sink_that_only_the_ledger_knows_is_listed(line: CommandLine, ledger: Bed) -> None:
    with ledger.engine.begin() as connection:
        connection.execute(text("INSERT INTO counterfoil.sink (name) VALUES ('gone')"))
    found = {one["name"]: one for one in answered(line, "sinks", "list")["sinks"]}
    assert found["gone"]["declared"] is None
    assert "not declared" in line.run("sinks", "list").stdout
