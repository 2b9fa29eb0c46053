"""What is said to come next is what the sweepers then do."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from counterfoil.core.decisions import Ahead, Answered, ahead, send_again, settle
from counterfoil.core.outcomes import AttemptOutcome
from counterfoil.core.reasons import Reason
from counterfoil.core.standing import Rules, Standing
from counterfoil.core.states import State
from tests.support.standings import KINDS, NOW, RUNNING, after, standings

SAID = {
    "probed, keyed": Ahead.PROBE,
    "probed, promises nothing": Ahead.PROBE,
    "probed, version guard": Ahead.PROBE,
    "by nature": Ahead.PROBE,
    "not probed, keyed": Ahead.SENT_AGAIN,
    "not probed, keyed, money": Ahead.PERSON,
    "not probed, promises nothing": Ahead.PERSON,
    "the receipt confirms": Ahead.SENT_AGAIN,
    "done elsewhere": Ahead.OUTCOME,
}


def doubted(rules: Rules, running: Standing = RUNNING) -> Standing:
    answered = Answered(running.attempt, AttemptOutcome.UNCERTAIN, Reason.TIMEOUT.value)
    move = settle(rules, running, answered, now=NOW, jitter=0.5, sampled=True)
    return after(running, move)


@pytest.mark.parametrize("kind", sorted(KINDS.keys() - {"in the ledger"}))
def test_each_kind_of_type_has_its_own_next_step_after_a_doubt(kind: str) -> None:
    assert ahead(KINDS[kind], doubted(KINDS[kind]), due=NOW) is SAID[kind]


def test_past_the_horizon_and_without_tries_it_is_a_person_s_turn() -> None:
    """S10: asked for the time at which it is due, not for now."""
    keyed = KINDS["not probed, keyed"]
    assert ahead(keyed, doubted(keyed), due=NOW + timedelta(hours=2)) is Ahead.PERSON
    assert ahead(keyed, doubted(keyed, replace(RUNNING, tries_left=0)), due=NOW) is Ahead.PERSON


@pytest.mark.parametrize("rules", KINDS.values(), ids=KINDS)
def test_it_is_sent_again_exactly_where_the_sweeper_would(rules: Rules) -> None:
    for standing in standings():
        said = ahead(rules, standing, due=NOW)
        assert (said is None) is (standing.state is not State.AWAITING_CONFIRMATION)
        assert (said is Ahead.SENT_AGAIN) is (send_again(rules, standing, now=NOW) is not None)
