"""What a person may do about a dead letter, on every standing: allowed exactly where it can double nothing."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from counterfoil.core.acts import Action
from counterfoil.core.decisions import Grounds, Move, No, discard, doubling, edit, look_first, not_admissible, replay
from counterfoil.core.decisions.people import MOST_REPLAYS, MOST_REVISIONS
from counterfoil.core.outcomes import AttemptOutcome
from counterfoil.core.reasons import Reason
from counterfoil.core.roles import ACTS, GRANTS, READS, TO_FORCE, Role, role_name
from counterfoil.core.states import FINAL, State
from tests.support.standings import KINDS, NOW, OUTSIDE, RUNNING, after, standings

QUARANTINED = replace(
    RUNNING, state=State.QUARANTINED, outcome=AttemptOutcome.PERMANENT, tries_left=0, session=None, attempt_until=None
)


def reason(decision: Move | No | None) -> Reason | None:
    return decision.reason if isinstance(decision, No) else None


@pytest.mark.parametrize("kind", KINDS)
def test_a_replay_is_allowed_where_nothing_may_have_reached_the_sink_and_nowhere_else(kind: str) -> None:
    """S10, S11, S13: whoever insists; what is let through can be admitted without a risk that anybody has to accept."""
    rules = KINDS[kind]
    for standing in standings():
        for grounds in (None, *Grounds):
            decided = replay(rules, standing, grounds, replays=0, now=NOW)
            free = standing.state is State.QUARANTINED and not standing.doubtful and not standing.cancel_asked
            assert isinstance(decided, Move) == (free and grounds is not None and not rules.done_elsewhere), (standing, grounds)
            if isinstance(decided, Move):
                assert not_admissible(rules, after(standing, decided), NOW) is None


@pytest.mark.parametrize("kind", KINDS)
def test_a_replay_opens_a_new_cycle_of_tries_and_attempt_numbers_go_on(kind: str) -> None:
    """S22."""
    rules = KINDS[kind]
    for standing in standings():
        decided = replay(rules, standing, Grounds.FORCED, replays=99, now=NOW)
        if isinstance(decided, Move):
            now = after(standing, decided)
            assert now.tries_left == max(rules.max_tries, standing.tries_left)
            assert (now.attempt, now.revision, now.accepted_risk) == (standing.attempt, standing.revision, standing.accepted_risk)


def test_the_key_changes_only_where_every_earlier_attempt_was_closed() -> None:
    """D76, T5: the same payload under the same key."""
    for outcome in AttemptOutcome:
        decided = replay(OUTSIDE, replace(QUARANTINED, outcome=outcome), Grounds.FORCED, replays=0, now=NOW)
        if isinstance(decided, Move):
            assert decided.new_key == (outcome is AttemptOutcome.CLOSED)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"state": State.CONFIRMED}, Reason.ALREADY_FINAL),
        ({"state": State.QUEUED}, Reason.NOT_QUARANTINED),
        (
            {"outcome": AttemptOutcome.UNCERTAIN, "doubtful_since": NOW, "doubtful_key": (1, 0), "unresolved": True},
            Reason.UNRESOLVED_ATTEMPT,
        ),
        ({"outcome": AttemptOutcome.APPLIED, "doubtful_since": NOW, "doubtful_key": (1, 0)}, Reason.MAY_HAVE_BEEN_APPLIED),
        ({"doubtful_since": NOW - timedelta(hours=2), "doubtful_key": (1, 0)}, Reason.PAST_KEY_HORIZON),
        ({"doubtful_since": NOW, "doubtful_key": (0, 0)}, Reason.PAST_KEY_HORIZON),
        ({"cancel_asked": True}, Reason.CANCEL_ASKED),
    ],
)
def test_a_refused_replay_says_why_whatever_it_rests_on(changed: dict[str, object], said: Reason) -> None:
    """S10, S11: insisting changes no answer."""
    standing = replace(QUARANTINED, **changed)  # type: ignore[arg-type]
    for grounds in Grounds:
        assert reason(replay(OUTSIDE, standing, grounds, replays=0, now=NOW)) is said


def test_a_replay_needs_a_change_or_somebody_who_insists() -> None:
    """D70, D76: the same content comes back a bounded number of times; correcting it counts anew."""
    assert reason(replay(OUTSIDE, QUARANTINED, None, replays=0, now=NOW)) is Reason.NOTHING_CHANGED
    assert isinstance(replay(OUTSIDE, QUARANTINED, Grounds.CONSUMER, replays=MOST_REPLAYS - 1, now=NOW), Move)
    assert reason(replay(OUTSIDE, QUARANTINED, Grounds.CONSUMER, replays=MOST_REPLAYS, now=NOW)) is Reason.REPLAYED_TOO_OFTEN
    for grounds in (Grounds.FIXED, Grounds.FORCED):
        assert isinstance(replay(OUTSIDE, QUARANTINED, grounds, replays=50, now=NOW), Move)


@pytest.mark.parametrize("kind", KINDS)
def test_an_edit_is_allowed_where_a_replay_is_and_for_the_revision_that_was_read(kind: str) -> None:
    """S11, T4, T5: a new key protects nothing of the old one."""
    rules = KINDS[kind]
    for standing in standings():
        free = standing.state is State.QUARANTINED and not standing.doubtful and not rules.done_elsewhere
        assert (edit(rules, standing, seen_revision=standing.revision, now=NOW) is None) == free, standing
        if free:
            assert reason(edit(rules, standing, seen_revision=standing.revision - 1, now=NOW)) is Reason.SOMEBODY_WAS_FIRST


def test_an_operation_has_a_bounded_number_of_revisions() -> None:
    standing = replace(QUARANTINED, revision=MOST_REVISIONS)
    assert reason(edit(OUTSIDE, standing, seen_revision=MOST_REVISIONS, now=NOW)) is Reason.REVISED_TOO_OFTEN


@pytest.mark.parametrize("kind", KINDS)
def test_where_something_is_in_doubt_a_look_is_the_only_act(kind: str) -> None:
    """S11, S13."""
    rules = KINDS[kind]
    for standing in (one for one in standings() if one.state is State.QUARANTINED):
        looked, given_up = look_first(rules, standing), discard(standing)
        if rules.done_elsewhere:
            assert reason(looked) is Reason.WRONG_KIND_OF_TYPE
        else:
            assert isinstance(looked, Move) == standing.doubtful
        assert isinstance(given_up, Move) == (not standing.doubtful)


def test_nothing_that_has_left_quarantine_can_be_acted_on_here() -> None:
    """S3, S13."""
    for standing in (one for one in standings() if one.state is not State.QUARANTINED):
        said = Reason.ALREADY_FINAL if standing.state in FINAL else Reason.NOT_QUARANTINED
        for decided in (
            discard(standing),
            look_first(OUTSIDE, standing),
            edit(OUTSIDE, standing, seen_revision=1, now=NOW),
            replay(OUTSIDE, standing, Grounds.FORCED, replays=0, now=NOW),
        ):
            assert reason(decided) is said


def test_what_may_be_doubled_is_said_for_every_kind_of_sink() -> None:
    told = {kind: doubling(rules) for kind, rules in KINDS.items()}
    assert "promises nothing" in told["probed, promises nothing"]
    assert "changes nothing" in told["probed, version guard"]
    assert "for 1 h" in told["probed, keyed"]
    assert "without end" in told["by nature"]
    assert "own database" in told["in the ledger"]


def test_every_act_has_one_role_and_each_role_has_the_rights_of_those_before_it() -> None:
    assert set(ACTS) == set(Action)
    assert [one.covers(Role.OPERATOR) for one in Role] == [False, True, True, True]
    assert TO_FORCE.covers(max(ACTS.values(), key=list(Role).index))
    assert set(READS.values()) <= set(Role)
    assert set(GRANTS) == set(Role)
    assert all(len(role_name("x" * 40, one)) <= 63 for one in Role)


def test_a_reader_is_granted_no_column_that_holds_bytes() -> None:
    """S18: not even with a client of his own."""
    columns = {column for grant in GRANTS[Role.READER] for column in grant.columns}
    assert not columns & {"value", "key", "headers"}
    assert all(grant.privileges == "SELECT" for grant in GRANTS[Role.READER])
