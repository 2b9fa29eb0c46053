"""The database roles of a ledger: made once, asked before each act, and held by the database itself."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from psycopg import sql
from sqlalchemy import make_url, text
from sqlalchemy.exc import ProgrammingError

from counterfoil.core.roles import Role, role_name
from counterfoil.ledger.engine import ledger_engine
from counterfoil.ledger.roles import ensure, role_of
from examples.sync_customer import Customer, sync_customer
from tests.support.ledgers import Bed
from tests.support.planted import Planted
from tests.support.processes import CommandLine
from tests.support.quarantined import quarantined


@pytest.fixture
def logins(ledger: Bed) -> Iterator[dict[str, str]]:
    """A login for each role, and one without any; their URLs by name."""
    made = ensure(ledger.url, ledger.name)
    assert made.roles
    names = {role.value: f"{ledger.name}_{role.value}_login" for role in Role} | {"nobody": f"{ledger.name}_nobody"}
    with ledger.server.connect() as connection:
        for kind, name in names.items():
            connection.execute(sql.SQL("CREATE ROLE {} LOGIN").format(sql.Identifier(name)))
            if kind != "nobody":
                group = sql.Identifier(role_name(ledger.name, Role(kind)))  # type: ignore[call-arg]
                connection.execute(sql.SQL("GRANT {} TO {}").format(group, sql.Identifier(name)))
    yield {kind: make_url(ledger.url).set(username=name).render_as_string(hide_password=False) for kind, name in names.items()}
    with ledger.engine.begin() as connection:
        for role in (*names.values(), *(role_name(ledger.name, role) for role in Role)):
            connection.execute(text(f'DROP OWNED BY "{role}"'))
            connection.execute(text(f'DROP ROLE "{role}"'))


def test_roles_are_made_once_and_the_same_again_changes_nothing(ledger: Bed, logins: dict[str, str]) -> None:
    assert ensure(ledger.url, ledger.name) == ensure(ledger.url, ledger.name)
    for kind, url in logins.items():
        engine = ledger_engine(url, pool_size=1)
        with engine.connect() as connection:
            held = role_of(connection, ledger.name)
        engine.dispose()
        assert (held.value if held else "nobody") == kind


def test_a_login_that_may_not_make_roles_is_told_what_to_run_by_hand(ledger: Bed, logins: dict[str, str]) -> None:
    made = ensure(logins["operator"], ledger.name)
    assert made.roles == ()
    assert made.by_hand[0] == f'CREATE ROLE "{role_name(ledger.name, Role.READER)}" NOLOGIN;'


def test_each_act_needs_its_role_and_says_which(
    command_line: CommandLine, ledger: Bed, planted: Planted, logins: dict[str, str]
) -> None:
    """S13, S18: a reader sees causes and no byte; an operator replays; an approver corrects and insists."""
    command_line.settings |= {"operations": "examples.operations:OPERATIONS", "brokers": "127.0.0.1:1"}
    one, other = quarantined(ledger, sync_customer, [Customer(f"c-{n}", 1, planted.payload) for n in range(2)])
    patch = command_line.folder / "patch.json"
    patch.write_text('{"email": "right@example.org"}')

    def asked(kind: str, *arguments: str, code: int = 0) -> Any:
        return json.loads(command_line.run("dlq", *arguments, "--json", code=code, database=logins[kind]).stdout)

    def needs(kind: str, role: Role, *arguments: str) -> None:
        error = asked(kind, *arguments, code=1)["error"]
        assert (error["code"], error["subject"]) == ("role_needed", role_name(ledger.name, role))

    assert asked("reader", "list", "--groups")["count"] == 2
    assert asked("reader", "show", str(one))["payload"] is None
    plan = ("plan", "--id", str(one), "--reason", "look")
    fix = ("fix", str(one), "--patch", str(patch), "--reason", "ticket")
    needs("reader", Role.OPERATOR, *plan)
    needs("operator", Role.APPROVER, *fix)
    needs("operator", Role.APPROVER, *plan, "--force")
    assert asked("operator", "show", str(one), "--raw", "--reason", "asked")["raw_bytes"]
    forced = str(asked("approver", *plan, "--force")["id"])
    needs("operator", Role.APPROVER, "replay", forced, "--reason", "go")
    assert asked("approver", *fix)["revision"] == 2
    number = str(asked("operator", *plan)["id"])
    assert asked("operator", "replay", number, "--reason", "go", "--no-canary")["sent"] == 1
    assert asked("operator", "discard", str(other), "--reason", "gone")["sent"] == 1
    with ledger.engine.connect() as connection:
        actors = set(connection.execute(text("SELECT actor FROM counterfoil.act")).scalars())
    assert actors == {f"{ledger.name}_operator_login", f"{ledger.name}_approver_login"}


def test_the_database_itself_gives_a_reader_no_byte_and_nobody_without_a_role_anything(
    ledger: Bed, logins: dict[str, str]
) -> None:
    """S18: with a client of his own."""
    for kind, query in (
        ("reader", "SELECT value FROM counterfoil.payload"),
        ("reader", "SELECT key FROM counterfoil.outbox"),
        ("reader", "SELECT value FROM counterfoil.digest_secret"),
        ("reader", "UPDATE counterfoil.state SET reason = 'x'"),
        ("operator", "DELETE FROM counterfoil.act"),
        ("operator", "UPDATE counterfoil.event SET reason = 'x'"),
        ("nobody", "SELECT * FROM counterfoil.state"),
    ):
        engine = ledger_engine(logins[kind], pool_size=1)
        with engine.connect() as connection, pytest.raises(ProgrammingError):
            connection.execute(text(query))
        engine.dispose()
