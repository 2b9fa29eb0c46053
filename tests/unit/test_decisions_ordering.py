"""Order per entity, by enumeration: whose turn it is, what is overtaken, and that no effect ever goes backwards."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest

from counterfoil.core.decisions import not_admissible, ordering
from counterfoil.core.decisions.admission import may_admit
from counterfoil.core.decisions.ordering import FREE, Neighbour, Turn
from counterfoil.core.order import Ordering
from counterfoil.core.reasons import Reason
from counterfoil.core.standing import Rules
from counterfoil.core.states import FINAL, WAITING, State
from tests.explore import line
from tests.explore.ordered import ended
from tests.explore.ordered_cases import CONFIGURATIONS, LATEST, STRICT, Ordered, OrderedCase, ordered_cases
from tests.support.standings import NOW, OUTSIDE, RUNNING, SECOND, standings


@pytest.mark.parametrize("searched", [each for each in CONFIGURATIONS if not each.replays], ids=lambda each: each.name)
def test_no_effect_ever_lands_behind_one_of_a_later_operation(searched: Ordered) -> None:
    """S7, L1: over every order of admissions, answers, late landings, cancels, verdicts, risks; `make explore` adds replays."""
    search = searched.search()
    found = search.run()
    assert found.violation is None, found.trace
    assert {State.RUNNING, State.CONFIRMED, State.NOT_APPLICABLE, State.AWAITING_CONFIRMATION, State.RETRY_WAIT} <= set(
        found.reached
    )
    assert any(len(world.landed) == searched.operations for world in search.worlds), "all may have an effect, in order"
    assert any(ended(world) for world in search.worlds)


@pytest.mark.parametrize("case", list(ordered_cases()), ids=lambda case: f"{case.name} {case.rule}")
def test_each_rule_is_needed(case: OrderedCase) -> None:
    """T10, T11, T13, T14, T15, H4: with one of them taken out, the search finds what it prevents."""
    found = case.without().run()
    assert found.violation is not None
    assert found.violation.invariant == case.falls, found.trace


@pytest.mark.parametrize("locked", [True, False])
def test_the_next_operation_is_stranded_only_without_the_lock_of_its_entity(locked: bool) -> None:
    """H1, L5."""
    assert (line.search(locked=locked).violation is None) is locked


def neighbour(position: int, state: State, **changed: object) -> Neighbour:
    given: dict[str, object] = {"number": 10 + position, "state": state, **changed}
    return Neighbour(position, replace(RUNNING, **given))  # type: ignore[arg-type]  # each is a field of its own type


@pytest.mark.parametrize("state", list(State))
def test_a_strict_operation_waits_for_the_first_that_was_not_passed(state: State) -> None:
    """S7: whatever its state, but for those that pass it; quarantined and in review it stays the head."""
    passed = state is State.SUCCEEDED or state in FINAL
    turn = ordering.turn(STRICT, 3, 1, [neighbour(1, state), neighbour(2, State.QUEUED), neighbour(4, State.RUNNING)])
    assert turn.behind == (12 if passed else 11)
    assert not turn.free(STRICT, RUNNING, NOW)
    assert ordering.passes(state) is passed
    assert ordering.turn(STRICT, 2, 1, [neighbour(1, state)]).free(STRICT, RUNNING, NOW) is passed


@pytest.mark.parametrize("state", list(State))
@pytest.mark.parametrize("doubtful", [False, True])
def test_a_newer_version_waits_for_an_older_one_of_which_nobody_knows(state: State, doubtful: bool) -> None:
    """H4: running, or in doubt and not settled; a version guard makes any of them harmless."""
    since = NOW - SECOND if doubtful else None
    old = neighbour(1, state, doubtful_since=since, attempt_until=NOW - 60 * SECOND)
    turn = ordering.turn(LATEST, 2, 1, [old])
    waits = state is State.RUNNING or (doubtful and state in ordering.UNSETTLED)
    assert (turn.behind is not None) is waits
    assert turn.free(LATEST, RUNNING, NOW) is not waits
    assert turn.free(replace(LATEST, version_guard=True), RUNNING, NOW)


def test_a_settled_older_version_with_a_doubt_left_holds_the_entity_to_the_end_of_its_wait() -> None:
    """T13: to the moment, and not longer."""
    over = [
        neighbour(1, State.CONFIRMED, doubtful_since=NOW - 60 * SECOND, attempt_until=NOW),
        neighbour(2, State.SUCCEEDED, doubtful_since=NOW - 90 * SECOND, attempt_until=NOW - 30 * SECOND),
    ]
    for rules, mark in ((LATEST, 2), (STRICT, 3)):
        turn = ordering.turn(rules, 3, mark, over)
        assert turn.until == NOW + rules.absence_wait
        assert not turn.free(rules, RUNNING, NOW + rules.absence_wait - SECOND)
        assert turn.free(rules, RUNNING, NOW + rules.absence_wait)


def test_only_a_version_that_can_be_sent_now_replaces_an_older_one() -> None:
    """One for later, one that was cancelled and one in quarantine replace nothing yet."""
    waiting = neighbour(2, State.QUEUED)
    assert ordering.turn(LATEST, 1, None, [waiting]).newer
    assert not ordering.turn(LATEST, 1, None, [waiting._replace(scheduled=True)]).newer
    assert not ordering.turn(LATEST, 1, None, [neighbour(2, State.QUEUED, cancel_asked=True)]).newer
    assert not ordering.turn(LATEST, 1, None, [neighbour(2, State.QUARANTINED)]).newer
    assert ordering.turn(LATEST, 1, 2, [neighbour(2, State.CONFIRMED)]).passed


TURNS = [Turn(*each) for each in product((False, True), (False, True), (None, 9), (None, NOW + SECOND))]


@pytest.mark.parametrize("rules", [STRICT, LATEST, replace(LATEST, version_guard=True)], ids=["strict", "latest", "guard"])
def test_what_was_overtaken_is_closed_or_looked_up_and_never_admitted(rules: Rules) -> None:
    """S7, S10, S11: over every standing and every turn; what merely waits is left as it is."""
    closed = looked = 0
    for standing, turn in product(standings(), TURNS):
        if rules.ordering is Ordering.STRICT:
            turn = replace(turn, newer=False)
        move = not_admissible(rules, standing, NOW, turn=turn)
        if turn.overtakes(standing) and standing.state in WAITING:
            assert move is not None
            assert not may_admit(rules, standing, NOW, revision=1, turn=turn)
        if move is None:
            continue
        assert standing.state in WAITING
        if move.reason == Reason.SUPERSEDED:
            closed += 1
            assert move.to is State.NOT_APPLICABLE
            assert not standing.doubtful
            assert rules.ordering is Ordering.LATEST_WINS
        if move.reason == Reason.LATER_SENT:
            looked += 1
            assert move.to is State.AWAITING_CONFIRMATION
    assert looked > 100
    assert closed > 100 or rules.ordering is Ordering.STRICT


def test_an_operation_without_an_order_is_always_free() -> None:
    assert ordering.turn(OUTSIDE, 5, 1, [neighbour(1, State.RUNNING)]) == FREE
    assert FREE.free(OUTSIDE, RUNNING, NOW)
