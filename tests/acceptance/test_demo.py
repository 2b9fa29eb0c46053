"""`counterfoil demo` as a reader runs it, with fewer operations."""

import orjson
import pytest

from tests.support.processes import CommandLine


@pytest.mark.timeout(180)
def test_the_demo_loses_nothing_and_doubles_nothing_although_a_worker_is_killed(command_line: CommandLine) -> None:
    """S1, S4, S19, L1 and L5, by the journals of the CRM and of the store."""
    ended = command_line.run("demo", "--operations", "200", "--json", within=170)
    told = orjson.loads(ended.stdout)
    assert told["accepted"] == 200
    assert told["rolled_back"] > 0
    assert told["rolled_back_yet_found"] == 0
    assert told["at_rest"] is True
    assert told["exit_codes"].pop("relay") == 0
    assert sorted(told["exit_codes"].values()) == [-9, 0]
    assert told["left_open"] > 0, "the worker that was killed held nothing"
    assert sum(told["crm_misbehaved"].values()) > 0
    assert told["repeats_answered"] > 0, "no uncertain attempt was sent again: doubled 0 would prove nothing"
    assert told["types"]["sync_customer"]["states"] == {"succeeded": 100}
    assert told["types"]["sync_customer"]["in_journal"] == 100
    assert told["types"]["sync_customer"]["waiting_for_confirmation"] == 0
    assert sum(told["types"]["export_report"]["states"].values()) == 100
    assert told["types"]["export_report"]["waiting_for_confirmation"] == 100
    assert list(told)[-2:] == ["lost", "doubled"]
    assert (told["lost"], told["doubled"]) == (0, 0)


@pytest.mark.timeout(180)
def test_the_last_two_lines_are_lost_and_doubled(command_line: CommandLine) -> None:
    ended = command_line.run("demo", "--operations", "40", within=170)
    assert ended.stdout.splitlines()[-2:] == ["lost 0", "doubled 0"]
    assert "brokers = embedded" in ended.stdout
    assert "waiting for" in ended.stdout
