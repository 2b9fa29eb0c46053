"""The table of states: complete, closed, and the same as the page made from it."""

from __future__ import annotations

from pathlib import Path

import pytest

from counterfoil.core import diagram
from counterfoil.core.events import EventKind
from counterfoil.core.outcomes import DOUBTFUL, NOT_APPLIED, UNRESOLVED, AttemptOutcome
from counterfoil.core.states import DUE, EXCEPTIONS, FINAL, UNFINISHED, State
from counterfoil.core.transitions import TABLE, Actor, check_move, exits, is_edge, is_reported

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "states.md"


@pytest.mark.parametrize("state", sorted(FINAL))
def test_a_final_state_has_no_exits(state: State) -> None:
    """S3: final states absorb."""
    assert exits(state) == frozenset()


@pytest.mark.parametrize("state", list(State))
def test_every_state_can_be_reached_and_every_unfinished_one_left_for_good(state: State) -> None:
    """L1: from every unfinished state some road ends in a final one or in front of a person."""
    assert any(state in row.targets for row in TABLE)
    reached, new = {state}, {state}
    while new:
        new = {target for source in new for target in exits(source)} - reached
        reached |= new
    assert reached & (FINAL | EXCEPTIONS)


def test_quarantine_is_left_by_a_persons_act_only() -> None:
    """S13: leaving quarantine needs a person's act; a recovery plan is one."""
    left_by = {actor for row in TABLE if State.QUARANTINED in row.sources for actor in row.who}
    assert left_by == {Actor.PERSON, Actor.RECOVER}


def test_a_person_or_a_plan_alone_ends_a_review() -> None:
    """S14: nothing but a person decides what a person was asked to decide."""
    assert {actor for row in TABLE if State.MANUAL_REVIEW in row.sources for actor in row.who} == {Actor.PERSON, Actor.RECOVER}


def test_only_a_worker_makes_an_operation_run() -> None:
    """S8: an attempt begins by the worker's admission, from a waiting state."""
    rows = [row for row in TABLE if State.RUNNING in row.targets]
    assert len(rows) == 1
    assert rows[0].sources == frozenset({State.QUEUED, State.RETRY_WAIT})
    assert rows[0].who == frozenset({Actor.WORKER})


def test_running_is_left_only_by_its_worker_the_sweeper_or_a_recovery() -> None:
    """S9: no caller and no reconciler changes the state of an operation that runs."""
    left_by = {actor for row in TABLE if State.RUNNING in row.sources for actor in row.who}
    assert left_by == {Actor.WORKER, Actor.DUE_SWEEPER, Actor.RECOVER}


def test_every_transition_but_into_queued_and_running_is_reported() -> None:
    """S16: a state record for each reported transition."""
    assert {state for state in State if not is_reported(state)} == {State.QUEUED, State.RUNNING}


def test_an_edge_that_no_row_has_is_refused() -> None:
    """S3: only the transitions of the table."""
    check_move(State.RUNNING, State.SUCCEEDED, Actor.WORKER)
    assert not is_edge(State.RUNNING, State.SUCCEEDED, Actor.DUE_SWEEPER)
    with pytest.raises(ValueError, match="relay"):
        check_move(State.CONFIRMED, State.QUEUED, Actor.RELAY)


def test_every_row_says_who_when_and_which_event() -> None:
    """S3: no row is without an actor, a condition or an event of the closed list."""
    for row in TABLE:
        assert row.sources, row
        assert row.targets, row
        assert row.who, row
        assert row.condition, row
        assert row.kind in EventKind


def test_each_unfinished_state_has_a_meaning_of_its_due_time_and_no_final_one_has() -> None:
    """D14: no row is in a half-way state that nothing looks at."""
    assert set(DUE) == UNFINISHED


def test_every_outcome_is_doubtful_or_certainly_not_applied_or_done() -> None:
    """S11: the sets that the rules speak of leave no outcome out and count none twice."""
    assert DOUBTFUL | NOT_APPLIED | {AttemptOutcome.DONE} == set(AttemptOutcome)
    assert not DOUBTFUL & NOT_APPLIED
    assert UNRESOLVED < DOUBTFUL


def test_the_page_of_states_is_what_the_tables_say_now() -> None:
    """The page is generated; run `make generate` when this fails."""
    assert PAGE.read_text(encoding="utf-8") == diagram.page()
