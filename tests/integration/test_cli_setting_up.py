"""`counterfoil init`, `check`, `topics` and `exits` in processes, against a real database and a real broker."""

import json
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from counterfoil.cli.exits import Exit
from tests.support.ledgers import Bed
from tests.support.planted import Planted
from tests.support.processes import CommandLine
from tests.support.shop import CONTRACT, MODULE, write_shop
from tests.support.topics import Topics


@pytest.fixture
def line(command_line: CommandLine, ledger: Bed) -> CommandLine:
    """The command line in a folder with one operation type and its contract, not locked yet."""
    write_shop(command_line.folder)
    command_line.settings = {"operations": "shop:OPERATIONS", "brokers": "127.0.0.1:1"} | command_line.settings
    return command_line


@pytest.fixture
def empty(ledger: Bed, line: CommandLine) -> Iterator[str]:
    """A database without a ledger, which the command line uses."""
    name = f"empty_{ledger.name}"
    line.settings["database"] = ledger.server.create_database(name)
    yield line.settings["database"]
    ledger.server.drop_database(name)


def answered(line: CommandLine, *arguments: str, code: int | None = 0, **settings: Any) -> Any:
    return json.loads(line.run(*arguments, "--json", code=code, **settings).stdout)


def marks(line: CommandLine, code: int, **settings: str) -> dict[str, str]:
    found = answered(line, "check", code=code, **settings)
    assert found["ok"] is (code == 0)
    assert all(one["todo"] for one in found["findings"] if one["mark"] in {"wrong", "unreachable"})
    return {one["name"]: one["mark"] for one in found["findings"]}


def test_init_makes_a_ledger_and_again_changes_nothing(line: CommandLine, empty: str) -> None:
    told = answered(line, "init")
    lock = Path(told["lock"])
    assert lock.parent == line.folder
    before = lock.read_text()
    assert answered(line, "init") == told
    assert lock.read_text() == before
    assert "shop.Mail" in before
    assert answered(line, "operations", "list")["operations"] == []


def test_init_refuses_another_name_for_the_same_database(line: CommandLine, empty: str) -> None:
    line.run("init")
    error = answered(line, "init", code=1, ledger="another")["error"]
    assert error["code"] == "ledger_name_fixed"


def test_init_refuses_a_contract_that_changed_until_it_is_told_to_renew(line: CommandLine, empty: str) -> None:
    line.run("init")
    changed = {**CONTRACT, "fields": [{"name": "mail_id", "type": {"type": "string", "logicalType": "uuid"}, "doc": "Its id."}]}
    (line.folder / "shop.py").write_text(
        MODULE.replace("mail_id: str", "mail_id: UUID").replace("import Path", "import Path\nfrom uuid import UUID")
    )
    (line.folder / "send_mail.avsc").write_text(json.dumps(changed))
    assert answered(line, "init", code=1)["error"]["code"] == "contract_mismatch"
    answered(line, "init", "--renew")


def test_check_before_init_says_to_run_it(line: CommandLine, empty: str, topics: Topics) -> None:
    found = marks(line, 1)
    assert found["database"] == "ok"
    assert found["migrations"] == "wrong"
    assert found["partition counts"] == "skipped"
    assert found[f"topic {topics.name('state')}"] == "wrong"
    assert "counterfoil init" in line.run("check", code=1).stdout


def test_check_names_every_wrong_setting_and_prints_none(line: CommandLine, planted: Planted) -> None:
    """S18."""
    found = marks(line, 1, lease=planted.payload, brokers="embedded", ledger=f"No {planted.key}")
    assert found == {"setting brokers": "wrong", "setting ledger": "wrong", "setting lease": "wrong"}


def test_check_tells_an_unreachable_database_from_a_wrong_one(line: CommandLine, planted: Planted) -> None:
    """S18: neither address nor password is printed."""
    line.run("init")
    nowhere = f"postgresql://app:{planted.password}@127.0.0.1:1/books"
    assert marks(line, 3, database=nowhere)["database"] == "unreachable"
    assert "127.0.0.1" not in line.run("check", code=3, database=nowhere).stdout


def test_check_looks_at_brokers_topics_and_types_while_the_database_is_away(line: CommandLine, topics: Topics) -> None:
    line.run("init")
    line.run("topics", "apply")
    found = marks(line, 3, database="postgresql://app@127.0.0.1:1/books")
    assert (found["database"], found["types"], found["brokers"], found["topics"]) == ("unreachable", "ok", "ok", "ok")
    assert found["partition counts"] == "skipped"


@pytest.mark.parametrize("command", ["init", "check"])
def test_a_database_that_its_server_does_not_have_is_named_and_told_how_to_make(
    line: CommandLine, ledger: Bed, planted: Planted, command: str
) -> None:
    """S18: the name and nothing else of the URL."""
    there = ledger.server.url_of("not there yet").replace("postgres@", f"postgres:{planted.password}@")
    ended = line.run(command, code=None, database=there)
    said = " ".join((ended.stdout + ended.stderr).split())
    assert "The server answers, the database not there yet does not exist." in said
    assert "createdb 'not there yet'" in said
    assert "127.0.0.1" not in said
    assert ended.code == (3 if command == "check" else 1)  # the broker is away too


def test_check_says_that_the_broker_is_not_there(line: CommandLine) -> None:
    line.run("init")
    found = marks(line, 3)
    assert (found["database"], found["brokers"], found["topics"]) == ("ok", "unreachable", "skipped")


def test_check_notices_a_module_that_cannot_be_imported(line: CommandLine, planted: Planted) -> None:
    """S18."""
    (line.folder / "shop.py").write_text(f"raise RuntimeError({planted.error!r})")
    found = marks(line, 3)
    assert (found["types"], found["brokers"]) == ("wrong", "unreachable")


def test_check_notices_another_ledgers_name_and_missing_partitions(line: CommandLine, ledger: Bed) -> None:
    line.run("init")
    with ledger.engine.begin() as connection:
        for parent in ("event", "published"):
            names = "SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = to_regclass(:parent)"
            for (name,) in connection.execute(text(names), {"parent": f"counterfoil.{parent}"}).all():
                connection.execute(text(f"DROP TABLE {name}"))
    found = marks(line, 3, ledger="another")
    assert (found["ledger"], found["partitions"]) == ("wrong", "wrong")


def test_check_lists_variables_that_are_no_settings(line: CommandLine) -> None:
    line.run("init")
    assert marks(line, 3, leese="30")["variables"] == "note"


def test_the_embedded_broker_is_named_by_every_command(line: CommandLine) -> None:
    line.run("init")
    assert marks(line, 0, embedded="true")["topics"] == "note"
    assert answered(line, "topics", "verify", code=1, embedded="true")["error"]["code"] == "embedded"


def test_topics_are_planned_made_and_verified(line: CommandLine, ledger: Bed, topics: Topics) -> None:
    line.run("init")
    wanted = {topics.name(*parts) for parts in (("state",), ("dead-letters",), ("send_mail", "commands"), ("send_mail", "retry"))}
    planned = answered(line, "topics", "plan")["steps"]
    assert {(step["topic"], step["act"]) for step in planned} == {(name, "create") for name in wanted}
    assert topics.existing() == set()
    assert {flaw["code"] for flaw in answered(line, "topics", "verify", code=1)["flaws"]} == {"missing"}
    assert marks(line, 1)[f"topic {topics.name('state')}"] == "wrong"
    assert answered(line, "topics", "apply")["steps"] == planned
    assert topics.existing() == wanted
    assert {step["act"] for step in answered(line, "topics", "apply")["steps"]} == {"keep"}
    assert answered(line, "topics", "verify")["ok"] is True
    assert {mark for name, mark in marks(line, 0).items() if not name.startswith("texts of")} == {"ok"}
    assert line.run("topics", "verify").stdout == "every topic is as it should be\n"


def test_exits_explains_every_code(command_line: CommandLine) -> None:
    told = answered(command_line, "exits")["exits"]
    assert [one["code"] for one in told] == [int(one) for one in Exit]


def test_the_version_is_printed_without_any_settings(command_line: CommandLine) -> None:
    assert command_line.run("--version").stdout == f"counterfoil {version('counterfoil')}\n"


def test_help_groups_the_commands(command_line: CommandLine) -> None:
    said = command_line.run("--help").stdout
    places = [
        said.index(name)
        for name in ("Setting up", "init", "Running", "relay", "Looking and acting", "operations", "Trying out", "demo")
    ]
    assert places == sorted(places)


def test_a_settings_file_is_named_on_the_command_line(line: CommandLine) -> None:
    line.run("init")
    (line.folder / "other.toml").write_text('leese = "1"\n')
    error = answered(line, "--settings", "other.toml", "operations", "list", code=2)["error"]
    assert "leese" in error["what"]
