"""The topics that a ledger needs, held against those that are there: every difference is named, nothing is decided in silence."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from counterfoil.streams.topics.wishes import (
    HEADROOM,
    INSYNC,
    LARGEST,
    POLICY,
    RETENTION,
    Choice,
    Seen,
    Wish,
    changed,
    flaws,
    steps,
    wishes,
)
from tests.support.stock import upsert_projection

CHOICE = Choice("shop", 6, 3, 1_000_000, timedelta(days=14), timedelta(days=30), timedelta(days=14))
WISHES = {wish.road: wish for wish in wishes(CHOICE, [upsert_projection], 3)}
STATE, LETTERS, COMMANDS = WISHES["state"], WISHES["dead_letter"], WISHES["command.upsert_projection"]


def good(wish: Wish) -> Seen:
    return Seen(wish.partitions, wish.replication, dict(wish.settings))


def codes(wish: Wish, seen: Seen | None, last: int | None = None) -> list[tuple[str, bool]]:
    return [(flaw.code, flaw.serious) for flaw in flaws(CHOICE, wish, seen, last)]


def test_a_ledger_has_a_state_and_a_dead_letter_topic_and_two_for_each_type() -> None:
    assert sorted(wish.name for wish in WISHES.values()) == [
        "shop.dead-letters",
        "shop.state",
        "shop.upsert_projection.commands",
        "shop.upsert_projection.retry",
    ]


def test_the_state_topic_is_compacted_and_the_dead_letters_are_kept_and_have_room_for_their_headers() -> None:
    assert STATE.settings[POLICY] == "compact"
    assert LETTERS.settings[POLICY] == "delete"
    assert int(LETTERS.settings[RETENTION]) == 30 * 86_400_000
    assert int(LETTERS.settings[LARGEST]) == CHOICE.message_bytes + HEADROOM


@pytest.mark.parametrize(("brokers", "replication", "insync"), [(1, 1, "1"), (2, 2, "1"), (3, 3, "2"), (9, 3, "2")])
def test_a_topic_is_kept_as_often_as_there_are_brokers_and_no_more_than_is_chosen(
    brokers: int, replication: int, insync: str
) -> None:
    for wish in wishes(CHOICE, [], brokers):
        assert (wish.replication, wish.settings[INSYNC]) == (replication, insync)


@pytest.mark.parametrize("wish", WISHES.values(), ids=list(WISHES))
def test_a_topic_as_wished_has_no_flaw_and_needs_no_step(wish: Wish) -> None:
    assert flaws(CHOICE, wish, good(wish), wish.partitions) == []
    assert [step.act for step in steps([wish], {wish.name: good(wish)})] == ["keep"]


def test_a_missing_topic_is_serious_and_would_be_created() -> None:
    """D13."""
    assert codes(COMMANDS, None) == [("missing", True)]
    assert [step.act for step in steps([COMMANDS], {})] == ["create"]


def test_a_changed_partition_count_is_told_until_it_is_accepted() -> None:
    """D20."""
    grown = replace(good(COMMANDS), partitions=12)
    assert codes(COMMANDS, grown, 6) == [("partitions_changed", False)]
    assert codes(COMMANDS, grown, 12) == []
    assert codes(COMMANDS, grown) == []


@pytest.mark.parametrize(
    ("wish", "setting", "value", "expected"),
    [
        (STATE, POLICY, "delete", ("cleanup_policy", True)),
        (STATE, POLICY, "compact,delete", ("cleanup_policy", True)),
        (LETTERS, POLICY, "compact", ("cleanup_policy", True)),
        (COMMANDS, POLICY, "compact", ("cleanup_policy", True)),
        (LETTERS, RETENTION, str(13 * 86_400_000), ("retention_short", True)),
        (LETTERS, RETENTION, str(20 * 86_400_000), ("retention_short", False)),
        (COMMANDS, RETENTION, "60000", ("retention_short", False)),
        (LETTERS, LARGEST, str(CHOICE.message_bytes), ("message_bytes_small", True)),
        (COMMANDS, LARGEST, "1000", ("message_bytes_small", False)),
        (STATE, INSYNC, "1", ("insync_low", False)),
    ],
)
def test_a_setting_that_loses_records_is_serious_and_any_other_is_told(
    wish: Wish, setting: str, value: str, expected: tuple[str, bool]
) -> None:
    """D67: the dead-letter topic is verified infrastructure."""
    seen = Seen(wish.partitions, wish.replication, {**wish.settings, setting: value})
    assert codes(wish, seen) == [expected]
    assert changed(wish, seen) == {setting: wish.settings[setting]}


def test_more_than_was_wished_is_left_as_it_is() -> None:
    seen = Seen(6, 3, {**LETTERS.settings, RETENTION: "-1", LARGEST: "9000000"})
    assert flaws(CHOICE, LETTERS, seen, 6) == []
    assert changed(LETTERS, seen) == {}


def test_settings_that_are_not_shown_are_told_and_never_altered() -> None:
    hidden = Seen(6, 3, None)
    assert codes(STATE, hidden) == [("unseen", False)]
    assert changed(STATE, hidden) == {}
    assert [step.act for step in steps([STATE], {STATE.name: hidden})] == ["by_hand"]


def test_a_topic_that_is_kept_too_few_times_is_a_person_s_work() -> None:
    thin = replace(good(STATE), replication=1)
    assert codes(STATE, thin) == [("replication_low", False)]
    assert [step.act for step in steps([STATE], {STATE.name: thin})] == ["by_hand"]
