"""Every transition that a worker, a sweeper or a relay may write has its line in the log and its counter."""

from __future__ import annotations

from collections import Counter
from typing import Any
from uuid import UUID

import orjson
import pytest

from counterfoil import telemetry
from counterfoil.core.decisions import Move
from counterfoil.core.events import EventKind
from counterfoil.core.outcomes import AttemptOutcome
from counterfoil.core.raised import Raised
from counterfoil.core.states import State
from counterfoil.core.transitions import TABLE, Actor
from counterfoil.ledger.moves import Written
from counterfoil.streams import outcome_lines
from counterfoil.telemetry import counters
from counterfoil.telemetry.lines import THE_LOG

ONE = UUID(int=7)


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counters and the log of this test alone."""
    monkeypatch.setattr(counters, "_counts", Counter())
    kept = vars(THE_LOG).copy()
    monkeypatch.setattr(THE_LOG, "to", object())
    monkeypatch.setattr(THE_LOG, "json", True)
    monkeypatch.setattr(THE_LOG, "dropped", kept["dropped"])


def test_no_transition_of_theirs_is_without_a_line() -> None:
    theirs = {Actor.WORKER, Actor.RELAY, Actor.DUE_SWEEPER}
    kinds = {row.kind for row in TABLE if row.who & theirs} - {EventKind.ADMITTED}  # told as `received`, with its attempt
    assert kinds <= outcome_lines.EVENTS.keys()


@pytest.mark.usefixtures("counted")
def test_what_a_sweeper_wrote_is_told_operation_by_operation(capsys: pytest.CaptureFixture[str]) -> None:
    outcome_lines.tell_written(
        [
            Written(ONE, "sync", 2, EventKind.QUARANTINED, State.QUARANTINED, "hold_over"),
            Written(ONE, "push", 1, EventKind.SENT_AGAIN, None, "sent_again"),
        ]
    )
    told: list[dict[str, Any]] = [orjson.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert [(line["event"], line["operation_id"], line["type"], line["attempt"], line["reason"]) for line in told] == [
        ("quarantined", str(ONE), "sync", 2, "hold_over"),
        ("sent_again", str(ONE), "push", 1, "sent_again"),
    ]
    assert telemetry.counts() == {("operations_settled", "sync", "hold_over", "quarantined"): 1}


@pytest.mark.usefixtures("counted")
def test_an_outcomes_line_tells_the_class_and_the_place_of_what_was_raised(capsys: pytest.CaptureFixture[str]) -> None:
    """S18: names, and no text."""
    move = Move(State.RETRY_WAIT, EventKind.RETRY_SCHEDULED, "temporary_failure", AttemptOutcome.TEMPORARY)
    outcome_lines.tell(
        "sync",
        [
            outcome_lines.Became(ONE, 2, move, Raised("acme.crm.Busy", "acme/crm.py:12")),
            outcome_lines.Became(ONE, 3, move),
        ],
    )
    raised, plain = (orjson.loads(line) for line in capsys.readouterr().err.splitlines())
    assert (raised["error_class"], raised["place"]) == ("acme.crm.Busy", "acme/crm.py:12")
    assert not {"error_class", "place"} & plain.keys()
