"""The command line's pure parts: the log of an operation, what it waits for, and what errors are told (S18)."""

import io
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import psycopg
import pytest
from rich.console import Console
from sqlalchemy.exc import OperationalError, ProgrammingError

from counterfoil import Refused
from counterfoil.cli import settings_page
from counterfoil.cli.answer import ago, as_json, moment
from counterfoil.cli.exits import Exit
from counterfoil.cli.finding import Finding, Mark, exit_of
from counterfoil.cli.operation_log import deliveries, entries
from counterfoil.cli.operation_view import View, as_data, as_words, waiting
from counterfoil.cli.trouble import SQLSTATES, Trouble, sorted_out
from counterfoil.core.decisions import Ahead
from counterfoil.core.reasons import Reason
from counterfoil.core.states import State
from counterfoil.ledger.reading import Event, History, Passed, Published, Unpublished, Whole
from counterfoil.settings import Settings, SettingsError
from tests.support.planted import Planted

NOON = datetime(2026, 12, 1, 12, tzinfo=UTC)


def whole(state: State = State.QUEUED, **changes: Any) -> Whole:
    """An operation at noon."""
    final = state in {State.CONFIRMED, State.COMPENSATED, State.NOT_APPLICABLE}
    facts: dict[str, Any] = dict.fromkeys(Whole.__dataclass_fields__) | {
        "number": 7,
        "operation_id": UUID(int=7),
        "type": "sync",
        "created_at": NOON - timedelta(minutes=5),
        "state": state.value,
        "attempt": 2,
        "tries_left": 6,
        "reason": "accepted",
        "due_at": None if final else NOON + timedelta(seconds=90),
        "closed_at": NOON if final else None,
        "updated_at": NOON,
        "sequence": 1,
        "revision": 1,
        "generation": 0,
        "cancel_asked": False,
        "now": NOON,
    }
    return Whole(**(facts | changes))


def view(one: Whole, **history: Any) -> View:
    empty: dict[str, Any] = dict.fromkeys(History.__dataclass_fields__, ())
    return View("books", one, History(**(empty | history)), [])


def event(ordinal: int, kind: str, second: int, attempt: int, detail: dict[str, Any] | None = None) -> Event:
    return Event(ordinal, NOON + timedelta(seconds=second), kind, "running", attempt, "admitted", detail)


def place(road: str, offset: int) -> dict[str, Any]:
    return {"road": road, "partition": 1, "offset": offset, "session": 3}


RETRIED = [
    event(1, "accepted", 0, 0),
    event(2, "admitted", 2, 1, place("commands", 40)),
    event(3, "retry_scheduled", 3, 1),
    event(4, "redelivered", 5, 1, place("commands", 40)),
    event(5, "admitted", 9, 2, place("retry", 7)),
    event(6, "result_saved", 10, 2),
]


def test_each_attempt_has_its_record_and_its_acknowledgement() -> None:
    received = deliveries(RETRIED, "books", "sync")
    assert [one.place for one in received] == [
        ("books.sync.commands", 1, 40),
        ("books.sync.commands", 1, 40),
        ("books.sync.retry", 1, 7),
    ]
    passed = [
        Passed("books.sync.commands", 1, 40, NOON + timedelta(seconds=4), 3),
        Passed("books.sync.retry", 1, 7, NOON + timedelta(seconds=11), 3),
    ]
    left = [Published("command", 1, 40, NOON + timedelta(seconds=1), 1)]
    log = entries(RETRIED, received, passed, left)
    assert [(entry.event, entry.attempt) for entry in log] == [
        ("accepted", 0),
        ("published", 0),
        ("received", 1),
        ("admitted", 1),
        ("retry_scheduled", 1),
        ("ack_sent", 1),
        ("redelivered", 1),
        ("received", 2),
        ("admitted", 2),
        ("result_saved", 2),
        ("ack_sent", 2),
    ]
    assert [entry.derived for entry in log].count(True) == 5


def test_details_that_are_not_listed_are_not_shown(planted: Planted) -> None:
    """S18."""
    (entry,) = entries([event(1, "accepted", 0, 0, {"body": planted.payload, "session": 3})], [], [], [])
    assert entry.detail == {"session": 3}


@pytest.mark.parametrize("state", State)
def test_every_state_says_what_it_waits_for(state: State) -> None:
    assert waiting(view(whole(state)))


@pytest.mark.parametrize(
    ("one", "history", "said"),
    [
        (whole(not_before=NOON + timedelta(hours=1)), {}, "its due time"),
        (whole(), {"unpublished": [Unpublished("command", NOON, 1)]}, "the relay"),
        (whole(State.RETRY_WAIT), {"unpublished": [Unpublished("state", NOON, 1)]}, "a worker"),
        (whole(State.SUCCEEDED, closed_at=NOON, due_at=None), {}, "nothing"),
        (whole(State.SUCCEEDED), {}, "its confirmation"),
        (whole(State.QUARANTINED), {}, "a person"),
    ],
)
def test_what_it_waits_for_follows_from_where_it_stands(one: Whole, history: dict[str, Any], said: str) -> None:
    assert waiting(view(one, **history)).startswith(said)


def test_the_screen_has_absolute_times_and_attempt_n_of_max() -> None:
    out = io.StringIO()
    shown = view(whole(State.RETRY_WAIT), published=[Published("retry", 2, 9, NOON, 4)])
    as_words(shown, utc=True, console=Console(file=out, width=200))
    said = out.getvalue()
    assert "2 of 8" in said
    assert "2026-12-01 12:01:30.000+00:00 (in 1m)" in said
    assert "retry → books.sync.retry [2] @ 9  2026-12-01 12:00:00.000+00:00" in said
    assert as_data(shown)["of"] == 8


def test_times_in_json_are_utc_whatever_the_session_had() -> None:
    there = datetime.fromisoformat("2026-12-01T14:00:00+02:00")
    assert '"2026-12-01T12:00:00Z"' in as_json({"at": [{"at": there}]})
    assert moment(there, utc=True) == "2026-12-01 12:00:00.000+00:00"
    assert moment(None, utc=True) == ""


@pytest.mark.parametrize(("seconds", "said"), [(0, "0s"), (59, "59s"), (60, "1m"), (-7300, "in 2h"), (200000, "2d")])
def test_a_span_is_told_in_its_largest_unit(seconds: int, said: str) -> None:
    assert ago(timedelta(seconds=seconds)) == said


class Failure(psycopg.Error):
    """A driver's error with a state of its own and a text that nobody may see."""

    def __init__(self, state: str | None, text: str) -> None:
        super().__init__(text)
        self.sqlstate = state


@pytest.mark.parametrize(
    ("state", "code", "end"),
    [
        (None, "database_unreachable", Exit.UNREACHABLE),
        ("08006", "database_unreachable", Exit.UNREACHABLE),
        ("28P01", "database_unreachable", Exit.UNREACHABLE),
        ("57P01", "database_unreachable", Exit.UNREACHABLE),
        ("57014", "database_slow", Exit.REFUSED),
        ("42P01", "ledger_old", Exit.REFUSED),
        ("40P01", "at_the_same_time", Exit.REFUSED),
        ("23505", "database", Exit.FAULT),
    ],
)
def test_a_database_error_is_told_by_its_state_alone(state: str | None, code: str, end: Exit, planted: Planted) -> None:
    """S18."""
    kind = OperationalError if state is None else ProgrammingError
    trouble = sorted_out(kind("SELECT 1", {"secret": planted.payload}, Failure(state, planted.error)))
    assert (trouble.code, trouble.exit) == (code, end)
    assert planted.error not in as_json(trouble.as_json())
    assert planted.payload not in as_json(trouble.as_json())


def test_an_error_that_nobody_expected_is_told_by_class_and_place(planted: Planted) -> None:
    """S18."""
    try:
        raise KeyError(planted.error)
    except KeyError as error:
        trouble = sorted_out(error)
    assert (trouble.code, trouble.exit) == ("fault", Exit.FAULT)
    assert "KeyError at tests.unit.test_cli" in trouble.what
    assert planted.error not in trouble.what


def test_a_refusal_has_its_reason_subject_and_advice() -> None:
    trouble = sorted_out(Refused(Reason.UNKNOWN_OPERATION, subject="7"))
    assert (trouble.code, trouble.subject, trouble.advice) == ("unknown_operation", "7", Reason.UNKNOWN_OPERATION.advice)
    assert sorted_out(trouble) is trouble


def test_wrong_settings_are_a_mistake_of_usage() -> None:
    assert sorted_out(SettingsError(("lease", "is wrong"))).exit is Exit.USAGE


def test_every_known_state_has_something_to_do() -> None:
    assert all(advice and code and what for code, what, advice, _ in SQLSTATES.values())


@pytest.mark.parametrize(
    ("marks", "end"),
    [
        ((), Exit.OK),
        ((Mark.OK, Mark.NOTE, Mark.SKIPPED), Exit.OK),
        ((Mark.OK, Mark.WRONG), Exit.REFUSED),
        ((Mark.WRONG, Mark.UNREACHABLE), Exit.UNREACHABLE),
    ],
)
def test_the_worst_finding_decides_the_end(marks: tuple[Mark, ...], end: Exit) -> None:
    assert exit_of([Finding("x", mark, "y") for mark in marks]) is end


def test_exit_codes_keep_their_numbers() -> None:
    assert {one.name: int(one) for one in Exit} == {"OK": 0, "REFUSED": 1, "USAGE": 2, "UNREACHABLE": 3, "FAULT": 4}
    assert isinstance(Trouble("a", "b", "c", Exit.USAGE), Exception)


def test_every_setting_has_a_meaning_on_its_page() -> None:
    rows = [line for line in settings_page.page().splitlines() if line.startswith("| `")]
    assert len(rows) == len(Settings.model_fields)
    assert [row for row in rows if row.endswith("|  |")] == []


@pytest.mark.parametrize("ahead", [*Ahead, None])
def test_what_awaits_confirmation_says_what_comes_next(ahead: Ahead | None) -> None:
    one = whole(State.AWAITING_CONFIRMATION)
    said = waiting(replace(view(one), ahead=ahead))
    assert {
        Ahead.OUTCOME: "records with `record_outcome`",
        Ahead.PROBE: "a probe of its sink",
        Ahead.SENT_AGAIN: "sent again under the same key at 2026-12-01 12:01:30.000+00:00",
        Ahead.PERSON: "a person, who must look",
        None: "not declared here",
    }[ahead] in said


def moved(ordinal: int, state: State, attempt: int, reason: str, detail: dict[str, Any] | None = None) -> Event:
    kind = "retry_scheduled" if state is State.RETRY_WAIT else state.value
    return Event(ordinal, NOON + timedelta(seconds=ordinal), kind, state.value, attempt, reason, detail)


RAISED = {"error_class": "acme.crm.Busy", "place": "acme/crm.py:12"}


def test_show_says_what_the_latest_attempt_raised_and_where() -> None:
    one = whole(State.AWAITING_CONFIRMATION, reason="unclassified_exception")
    seen = view(one, events=[moved(1, State.AWAITING_CONFIRMATION, 2, "unclassified_exception", RAISED)])
    out = io.StringIO()
    as_words(seen, utc=True, console=Console(file=out, width=200))
    assert "raised           acme.crm.Busy at acme/crm.py:12 " in out.getvalue()
    assert as_data(seen)["cause"]["raised"] == RAISED
    earlier = view(one, events=[moved(1, State.RETRY_WAIT, 1, "temporary_failure", RAISED)])
    assert as_data(earlier)["cause"]["raised"] is None, "the latest attempt raised nothing"


@pytest.mark.parametrize(("detail", "last"), [({"cause": "rate_limit"}, "rate_limit"), (None, "lease_over")])
def test_show_of_used_up_tries_says_the_last_cause_too(detail: dict[str, Any] | None, last: str) -> None:
    """Of the answer that used the last one up, or, where it had none, of the move before."""
    one = whole(State.QUARANTINED, reason="tries_used_up", tries_left=0)
    events = [
        moved(1, State.RETRY_WAIT, 1, "temporary_failure"),
        moved(2, State.RETRY_WAIT, 2, "lease_over"),
        moved(3, State.QUARANTINED, 2, "tries_used_up", detail),
    ]
    out = io.StringIO()
    as_words(view(one, events=events), utc=True, console=Console(file=out, width=200))
    assert f"tries_used_up: Every try was used; last: {last} (" in out.getvalue()
    assert as_data(view(one, events=events))["cause"]["last"]["reason"] == last
