"""`operations show` of operations that wait for each other: whom, and how many; never the entity's name (S18)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from counterfoil.core.outcomes import AttemptOutcome
from tests.support.ledgers import Bed
from tests.support.lines import LATEST, Line
from tests.support.planted import Planted
from tests.support.processes import CommandLine
from tests.support.stock import done, failed


@pytest.fixture
def line(command_line: CommandLine) -> CommandLine:
    command_line.settings |= {"operations": "examples.operations:OPERATIONS", "brokers": "127.0.0.1:1"}
    return command_line


def shown(line: CommandLine, ledger: Bed, number: int) -> tuple[dict[str, Any], str]:
    """The object, and the screen's text in one line."""
    one = str(ledger.one("SELECT operation_id FROM counterfoil.operation WHERE number = :n", n=number))
    told = json.loads(line.run("operations", "show", one, "--json").stdout)
    return told, " ".join(line.run("operations", "show", one).stdout.split())


def test_show_says_which_operation_one_waits_for_and_how_many_wait_behind_the_head(
    line: CommandLine, ledger: Bed, planted: Planted
) -> None:
    """L1, T14: what waits behind an operation on the exceptions list is shown with it."""
    mine = Line(ledger)
    numbers = mine.enqueue(*((planted.key, n) for n in range(1, 5)))
    mine.admit(*numbers)
    mine.hand.settle(numbers[0], failed(1, AttemptOutcome.PERMANENT, "rejected"))
    told, said = shown(line, ledger, numbers[2])
    head = str(ledger.one("SELECT operation_id FROM counterfoil.operation WHERE number = :n", n=numbers[0]))
    assert told["waiting"] == f"its turn in its entity: 2 before it, first {head}, which is quarantined and waits for a person"
    assert (told["entity"]["position"], told["entity"]["behind"]) == (3, head)
    assert "2 before it" in said
    told, said = shown(line, ledger, numbers[0])
    assert told["entity"]["waiting"] == 3
    assert "3 waiting behind this one" in said


def test_show_of_a_newer_version_names_the_older_one_that_it_waits_for(line: CommandLine, ledger: Bed) -> None:
    """T14: in doubt, then settled."""
    mine = Line(ledger, LATEST)
    (first,) = mine.enqueue(("a", 1))
    mine.admit(first)
    mine.hand.settle(first, failed(1, AttemptOutcome.UNCERTAIN, "timeout"))
    (second,) = mine.enqueue(("a", 2))
    mine.admit(second)
    told, _ = shown(line, ledger, second)
    assert told["waiting"].startswith("an older version of its entity, ")
    assert "awaiting_confirmation" in told["waiting"]
    assert "1 waiting behind this one" in shown(line, ledger, first)[1]
    mine.hand.settle(first, done(1))
    told, said = shown(line, ledger, second)
    assert told["waiting"] == "the relay, to publish its command record"
    assert "waiting behind" not in said
