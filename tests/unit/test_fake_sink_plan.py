"""What the fake sink's plan and content decide, without a process."""

from collections import Counter
from dataclasses import replace

import pytest

from counterfoil.sinks.fake.content import Command, Content, Nature
from counterfoil.sinks.fake.plan import Behaviour, Plan, Rule
from counterfoil.sinks.journal import Entry, Fate, doubled, effects_per_operation


def a_command(*, key: str | None = "k1", entity: str = "452", version: int | None = 1, append: bool = True) -> Command:
    return Command("r", entity, {"email": "a@b.c"}, append=append, key=key, operation="o1", version=version)


def test_the_first_rule_that_fits_wins_and_other_calls_are_normal() -> None:
    plan = Plan(rules=(Rule(Behaviour.CUT, entity="452", calls=(1, 3)), Rule(Behaviour.REJECT, key="k2")))
    assert [plan.rule("k1", "452", None, call).behaviour for call in (1, 2, 3)] == ["cut", "normal", "cut"]
    assert plan.rule("k2", "1", None, 9).behaviour is Behaviour.REJECT


def test_shares_are_seeded_and_met_by_first_calls_only() -> None:
    plan = Plan(shares={Behaviour.CUT: 0.1, Behaviour.SLOW: 0.2}, seed=7)
    met = Counter(plan.rule(f"k{n}", "e", None, 1).behaviour for n in range(2000))
    assert 150 < met[Behaviour.CUT] < 250
    assert 320 < met[Behaviour.SLOW] < 480
    assert met == Counter(plan.rule(f"k{n}", "e", None, 1).behaviour for n in range(2000))
    assert {plan.rule(f"k{n}", "e", None, 2).behaviour for n in range(2000)} == {Behaviour.NORMAL}


def test_a_plan_survives_its_text() -> None:
    plan = Plan((Rule(Behaviour.LATE, operation="o", calls=(2,), seconds=3.0),), {Behaviour.CUT: 0.1}, 2, 0.5, 9)
    assert Plan.loads(plan.dumps()) == plan


def test_a_repeat_of_a_known_key_is_answered_and_not_applied() -> None:
    content = Content(Nature(key_horizon=60))
    first, again = content.take(a_command(), 0.0), content.take(a_command(), 59.9)
    assert (first.fate, first.changed) == (Fate.APPLIED, True)
    assert (again.fate, again.changed, again.body) == (Fate.REPLAYED, False, first.body)


def test_a_key_that_expired_lets_the_same_request_be_a_second_effect() -> None:
    content = Content(Nature(key_horizon=60))
    content.take(a_command(), 0.0)
    assert content.take(a_command(), 60.0).changed


def test_one_key_with_other_content_is_refused() -> None:
    content = Content(Nature())
    content.take(a_command(), 0.0)
    assert content.take(replace(a_command(), fields={"email": "x"}), 1.0).status == 422


@pytest.mark.parametrize(("version", "status"), [(2, 200), (1, 412), (0, 412), (None, 412)])
def test_a_version_guard_refuses_what_is_not_newer(version: int | None, status: int) -> None:
    content = Content(Nature(version_guard=True))
    content.take(a_command(key="k1", append=False), 0.0)
    assert content.take(a_command(key="k2", version=version, append=False), 1.0).status == status


def test_an_applied_write_is_invisible_for_the_read_lag() -> None:
    content = Content(Nature(read_lag=5))
    content.take(a_command(append=False), 0.0)
    content.take(a_command(key="k2", version=2, append=False), 10.0)
    assert content.by_entity("452", 4.9) == []
    assert [row.version for row in content.by_entity("452", 14.9)] == [1]
    assert [row.version for row in content.by_entity("452", 15.0)] == [2]


def test_a_replacement_by_the_same_content_changes_nothing() -> None:
    content = Content(Nature(keyed=False))
    content.take(a_command(append=False), 0.0)
    again = content.take(a_command(append=False), 1.0)
    assert (again.fate, again.changed) == (Fate.APPLIED, False)


def test_doubled_counts_changes_beyond_one_an_operation_over_all_its_keys() -> None:
    """S1: effects are counted over all revisions and keys."""
    entry = Entry("r", Fate.APPLIED, "452", "d", 0.0, key="k1", operation="o1", changed_content=True)
    entries = [
        entry,
        replace(entry, key="k2"),
        replace(entry, key="k2", changed_content=False),
        replace(entry, operation="o2"),
        replace(entry, operation=None, key=None),
    ]
    assert effects_per_operation(entries) == {"o1": 2, "o2": 1, "452": 1}
    assert doubled(entries) == 1
