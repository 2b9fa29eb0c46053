"""What an inventory and a filed page say of a type: its risk, its texts, and every fact of its declaration in words."""

from datetime import timedelta
from typing import Any

import pytest

from counterfoil import FOREVER, DeclarationError, Operations, Policy, Remedy, Risk, Texts, hours, minutes, seconds
from counterfoil.cli.counted import Asked
from counterfoil.cli.exits import Exit
from counterfoil.cli.policies import now, sections
from counterfoil.cli.policy_facts import span
from counterfoil.cli.trouble import Trouble
from counterfoil.cli.type_view import lines, markdown
from counterfoil.core.riskiness import by_risk, enforced, risk_of
from counterfoil.settings import Settings
from examples.operations import OPERATIONS
from tests.unit.test_declaration_types import RAW, declare, effect

AWAY = Asked(Trouble("database_unreachable", "It is away.", "Look.", Exit.UNREACHABLE))


@pytest.mark.parametrize("name", ["effect", "truth", "evidence"])
@pytest.mark.parametrize("text", ["", "  ", "x" * 1001, "a\tb", "a\x1b[2Jb", 7])
def test_a_text_that_cannot_be_shown_is_refused_at_import(name: str, text: Any) -> None:
    with pytest.raises(DeclarationError, match=f"Texts: {name} must be"):
        Texts(**{name: text})


def test_texts_that_nobody_wrote_are_named() -> None:
    assert Texts().missing == ("effect", "truth", "evidence")
    assert Texts(effect="a\nb", truth="c", evidence="d").missing == ()
    with pytest.raises(DeclarationError, match="texts must be Texts"):
        declare(texts="charged once")


def test_a_worse_risk_outweighs_all_lesser_ones_together() -> None:
    money = declare(name="b_money", policy=Policy(risk=Risk(money=True)))
    hard = declare(name="a_hard", effect=effect(RAW), proof=None, policy=Policy(risk=Risk(hard_to_repeat=True)))
    mild = declare(name="c_mild")
    assert sorted([mild, hard, money], key=by_risk) == [money, hard, mild]
    assert risk_of(mild) == ()
    assert risk_of(hard) == ("hard to repeat", "a repeat is a second effect", "nothing can confirm it")


def test_the_mode_is_what_the_declaration_asks_for() -> None:
    asked = declare(policy=Policy(missing=Remedy.REQUEUE, enforce=[Remedy.REQUEUE]))
    assert enforced(asked) == ("requeue",)
    (line,) = lines(Operations(asked), AWAY)
    assert line.as_data()["mode"] == "enforce"
    assert "enforce requeue" in line.cells()


def test_a_bar_in_an_owner_does_not_break_the_table() -> None:
    rows = list(markdown(lines(Operations(declare(owner="a|b")), AWAY)))
    assert "a\\|b" in rows[2]


@pytest.mark.parametrize(
    ("time", "said"),
    [
        (seconds(0), "0 seconds"),
        (seconds(1.5), "1.5 seconds"),
        (minutes(1), "60 seconds"),
        (minutes(2), "2 minutes"),
        (hours(24), "24 hours"),
        (hours(48), "2 days"),
        (FOREVER, "for ever"),
        (timedelta(seconds=185), "185 seconds"),
    ],
)
def test_a_duration_is_told_in_a_unit_that_divides_it(time: timedelta, said: str) -> None:
    assert span(time) == said


@pytest.mark.parametrize("of", OPERATIONS.types, ids=lambda of: of.name)
def test_every_kind_of_type_has_its_page_without_a_ledger(of: Any) -> None:
    settings = Settings(ledger="books", operations="x:y", database="postgresql+psycopg://h/d", brokers="h:1")
    page = {one.name: dict(one.facts) for one in sections(of, settings, now(of, OPERATIONS, AWAY))}
    assert all(page.values())
    assert page["In force now"]["the ledger"].endswith("It is away.")
