"""How often the same thing is said: the first at once, then once in a while with the count of what was left out."""

from hypothesis import given
from hypothesis import strategies as st

from counterfoil.telemetry.quota import Quota

A, B = ("librdkafka", "ERROR"), ("librdkafka", "MAXPOLL")


def test_the_first_is_said_and_those_within_the_span_are_counted() -> None:
    quota = Quota(every=30)
    assert [quota.say(A, now) for now in (0, 1, 29.9, 30, 31)] == [0, None, None, 2, None]
    assert list(quota.rest()) == [(A, 1)]
    assert list(quota.rest()) == []


def test_kinds_do_not_count_for_each_other() -> None:
    quota = Quota(every=30)
    assert [quota.say(kind, 0) for kind in (A, B, A, B)] == [0, 0, None, None]


def test_no_more_kinds_are_remembered_than_the_bound() -> None:
    quota = Quota(every=30, kinds=2)
    assert [quota.say(("x", str(number)), 0) for number in range(5)] == [0] * 5
    assert quota.say(("x", "4"), 1) is None
    assert quota.say(("x", "0"), 1) == 0


@given(st.lists(st.floats(0, 300), max_size=60))
def test_every_one_is_said_or_counted_exactly_once(spans: list[float]) -> None:
    quota, now, said, counted = Quota(every=30), 0.0, 0, 0
    for span in spans:
        now += span
        left_out = quota.say(A, now)
        said += left_out is not None
        counted += left_out or 0
    assert said + counted + sum(left_out for _, left_out in quota.rest()) == len(spans)
