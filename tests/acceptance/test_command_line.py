"""The command line from an empty folder to a settled operation: init, topics, relay, worker, show."""

import json
from typing import Any

import pytest

from counterfoil import enqueue
from tests.support.ledgers import Bed
from tests.support.planted import Planted
from tests.support.processes import CommandLine
from tests.support.shop import load_shop, write_shop
from tests.support.topics import Topics
from tests.support.waiting import eventually


@pytest.fixture
def line(command_line: CommandLine, ledger: Bed) -> CommandLine:
    """The command line in a user's folder, on a ledger and no broker."""
    write_shop(command_line.folder)
    command_line.settings = {"operations": "shop:OPERATIONS", "brokers": "127.0.0.1:1"} | command_line.settings
    command_line.run("init")
    return command_line


def shown(line: CommandLine, operation_id: object) -> Any:
    return json.loads(line.run("operations", "show", str(operation_id), "--json").stdout)


def test_an_operation_is_followed_to_its_acknowledgement(
    line: CommandLine, ledger: Bed, topics: Topics, planted: Planted
) -> None:
    """Design 7: accepted, published, received, admitted, result_saved, ack_sent; the planted payload is in no line (S18)."""
    line.run("topics", "apply")
    shop = load_shop(line.folder)
    with ledger.engine.begin() as connection:
        one = enqueue(connection, shop.send_mail, shop.Mail(planted.payload))
    relay, worker = line.start("relay", "--json"), line.start("worker", "--json")

    def settled() -> bool:
        acknowledged = "SELECT count(*) FROM counterfoil.acknowledged"
        return bool(ledger.one("SELECT closed_at IS NOT NULL FROM counterfoil.state") and ledger.one(acknowledged))

    eventually(settled, within=60, what="a settled and acknowledged operation")
    eventually(lambda: ledger.one("SELECT count(*) FROM counterfoil.published") == 2, what="both records published")
    told = shown(line, one)
    assert (told["state"], told["final"], told["waiting"]) == ("succeeded", True, "nothing: it is final")
    mine = [entry["event"] for entry in told["log"] if entry["event"] != "published"]
    assert mine == ["accepted", "received", "admitted", "result_saved", "ack_sent"]
    assert {row["kind"] for row in told["published"]} == {"command", "state"}
    assert told["unpublished"] == []
    assert (worker.terminate(), relay.terminate()) == (0, 0)
    lines = [json.loads(line) for line in worker.output.splitlines()]
    of_it = [entry["event"] for entry in lines if entry.get("operation_id") == str(one)]
    assert of_it == ["received", "result_saved", "ack_sent"]
    assert any(entry["event"] == "counted" for entry in lines)


@pytest.mark.parametrize("command", ["relay", "worker"])
def test_a_process_without_a_ledger_says_to_init(line: CommandLine, ledger: Bed, command: str) -> None:
    name = f"empty_{ledger.name}"
    nowhere = ledger.server.create_database(name)
    try:
        ended = line.run(command, code=1, database=nowhere)
    finally:
        ledger.server.drop_database(name)
    assert "counterfoil init" in ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize("command", ["relay", "worker"])
def test_a_process_whose_database_is_away_leaves_with_3_after_a_while(line: CommandLine, planted: Planted, command: str) -> None:
    """S18: the address and the password are in no line."""
    away = f"postgresql://app:{planted.password}@127.0.0.1:1/books"
    ended = line.run(command, code=3, database=away, stop_after="2s")
    assert "127.0.0.1" not in ended.stdout + ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize("command", ["relay", "worker"])
def test_a_process_with_wrong_settings_ends_with_2(line: CommandLine, command: str) -> None:
    assert "lease" in line.run(command, code=2, lease="soon").stderr
