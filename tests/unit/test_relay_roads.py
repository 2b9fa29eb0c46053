"""Roads: how a closed one delays only its own rows."""

from counterfoil.core.reasons import Reason
from counterfoil.streams.roads import FIRST_WAIT, LONGEST_WAIT, Roads


def test_nothing_goes_to_a_topic_before_it_was_seen() -> None:
    """D13: a send to a topic that is not there could make it, with the broker's own partition count."""
    roads = Roads("shop")
    assert roads.shut("state", "shop.state") is Reason.TOPIC_MISSING
    assert roads.missing == {"shop.state"}
    assert roads.verified({"shop.state"}, {})
    assert roads.shut("state", "shop.state") is None
    assert not roads.missing
    assert not roads.closed(0.0)


def test_a_look_that_changes_nothing_opens_no_road() -> None:
    roads = Roads("shop")
    roads.verified({"shop.state"}, {})
    assert not roads.verified({"shop.state"}, {})


def test_a_road_that_a_verification_shut_opens_when_the_topic_is_good_again() -> None:
    """D67."""
    roads = Roads("shop")
    roads.verified({"shop.dead-letters"}, {"dead_letter": Reason.BROKER_REFUSED})
    assert roads.closed(0.0) == ["dead_letter"]
    assert roads.verified({"shop.dead-letters"}, {})
    assert roads.closed(0.0) == []


def test_a_failing_road_waits_longer_and_longer_up_to_a_limit_and_a_delivery_ends_that() -> None:
    roads, now, waits = Roads("shop", verified=False), 0.0, []
    for _ in range(12):
        waits.append(roads.close("state", now))
        assert roads.closed(now) == ["state"]
        now += waits[-1]
    assert waits[0] == FIRST_WAIT
    assert waits == sorted(waits)
    assert waits[-1] == LONGEST_WAIT
    roads.delivered("state")
    assert roads.close("state", now) == FIRST_WAIT


def test_many_failures_of_one_pass_are_one_failure_of_the_road() -> None:
    roads = Roads("shop", verified=False)
    roads.close("state", 0.0)
    assert roads.close("state", FIRST_WAIT / 2) == FIRST_WAIT / 2


def test_an_embedded_broker_has_every_road_open() -> None:
    assert Roads("shop", verified=False).shut("state", "shop.state") is None
