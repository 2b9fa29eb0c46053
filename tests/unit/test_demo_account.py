"""The demo's account: it must see what is lost and what is doubled, or its last two lines are worth nothing."""

from dataclasses import replace

import pytest

from counterfoil.core.states import EXCEPTIONS, State
from counterfoil.demo.account import Account, Stands, account
from counterfoil.sinks.journal import Entry, Fate

APPLIED = Entry("r1", Fate.APPLIED, "452", "d", 0.0, operation="one", changed_content=True)


def told(state: State | None, *, due: bool = True, closed: bool = False, journal: tuple[Entry, ...] = ()) -> Account:
    standing = {} if state is None else {"one": Stands(state, due, closed)}
    return account({"one": "sync_customer"}, {}, journal, standing)


def test_an_operation_that_the_ledger_does_not_know_is_lost() -> None:
    """S19."""
    assert told(None).lost == ["one"]


@pytest.mark.parametrize("state", list(State))
def test_an_open_operation_without_effect_is_not_lost_unless_it_says_done(state: State) -> None:
    done = state in {State.SUCCEEDED, State.CONFIRMED, State.COMPENSATING, State.COMPENSATED}
    assert bool(told(state).lost) is done


@pytest.mark.parametrize("state", list(State))
def test_without_effect_and_due_time_only_the_exceptions_list_saves_it(state: State) -> None:
    assert bool(told(state, due=False, closed=True).lost) is (state not in EXCEPTIONS)


def test_what_is_in_a_journal_is_not_lost_whatever_the_ledger_says() -> None:
    assert told(None, journal=(APPLIED,)).lost == []


def test_a_second_change_of_content_is_doubled_and_a_repeat_is_not() -> None:
    """S1."""
    repeat = replace(APPLIED, request="r2", fate=Fate.REPLAYED, changed_content=False)
    assert told(State.SUCCEEDED, journal=(APPLIED, repeat)).balanced
    twice = told(State.SUCCEEDED, journal=(APPLIED, replace(APPLIED, request="r2")))
    assert (twice.doubled, twice.balanced) == (1, False)


def test_what_a_caller_rolled_back_and_is_found_all_the_same_unbalances_the_account() -> None:
    """S4."""
    found = account({}, {"one": "sync_customer"}, [APPLIED], {})
    assert (found.unwanted, found.balanced) == (["one"], False)
    assert account({}, {"one": "sync_customer"}, [], {}).balanced


def test_it_counts_what_waits_for_confirmation_by_type() -> None:
    accepted = {"one": "a", "two": "a", "three": "a", "four": "b"}
    standing = {
        "one": Stands(State.SUCCEEDED, due=True, closed=False),
        "two": Stands(State.SUCCEEDED, due=False, closed=True),
        "three": Stands(State.AWAITING_CONFIRMATION, due=True, closed=False),
        "four": Stands(State.QUARANTINED, due=True, closed=False),
    }
    seen = account(accepted, {}, [APPLIED, replace(APPLIED, operation="two")], standing)
    assert (seen.types["a"].waiting_for_confirmation, seen.types["a"].effects) == (2, 2)
    assert seen.types["a"].states == {"succeeded": 2, "awaiting_confirmation": 1}
    assert (seen.types["b"].waiting_for_confirmation, seen.accepted, seen.lost) == (0, 4, [])
