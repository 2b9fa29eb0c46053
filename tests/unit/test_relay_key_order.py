"""The acknowledgement rule of the compacted topic (H2): the last record of a key must be the last row of that key."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from counterfoil.streams.relay.key_order import KeyOrder


@dataclass(eq=False)
class Row:
    """A row in flight."""

    id: int
    key: bytes | None = b"k"
    void: bool = False


def in_flight(count: int) -> tuple[KeyOrder[Row], list[Row]]:
    order, rows = KeyOrder[Row](), [Row(n) for n in range(count)]
    for row in rows:
        order.sent(row)
    return order, rows


def test_an_acknowledgement_counts_at_once_when_nothing_earlier_is_open() -> None:
    order, (first, second) = in_flight(2)
    assert order.acknowledged(first) == [first]
    assert order.acknowledged(second) == [second]
    assert len(order) == 0


def test_a_later_acknowledgement_waits_for_the_earlier_row_of_its_key() -> None:
    order, (first, second, third) = in_flight(3)
    assert order.acknowledged(third) == []
    assert order.acknowledged(first) == [first]
    assert order.acknowledged(second) == [second, third]


def test_rows_of_other_keys_do_not_wait() -> None:
    order = KeyOrder[Row]()
    mine, other = Row(1, b"a"), Row(2, b"b")
    order.sent(mine)
    order.sent(other)
    assert order.acknowledged(other) == [other]


def test_an_acknowledged_row_is_sent_again_when_an_earlier_one_of_its_key_is_unknown() -> None:
    """H2, S16: row 1 timed out, row 2 was acknowledged; without this row 1 would be the topic's last word."""
    order, (first, second) = in_flight(2)
    assert order.acknowledged(second) == []
    assert order.failed(first) == [second]
    assert second.void
    assert len(order) == 0


def test_a_row_without_a_report_is_void_as_soon_as_an_earlier_one_fails() -> None:
    """H2: its own acknowledgement, when it comes, does not count."""
    order, (first, second) = in_flight(2)
    assert order.failed(first) == []
    assert second.void
    assert order.acknowledged(second) == []


def test_nothing_of_a_key_is_sent_again_before_all_that_was_sent_of_it_is_reported() -> None:
    order, (first, second) = in_flight(2)
    order.failed(first)
    assert not order.may_send(b"k")
    assert order.acknowledged(second) == []
    assert order.may_send(b"k")
    again = Row(0)
    order.sent(again)
    assert order.acknowledged(again) == [again]


def test_a_refused_row_is_out_of_the_way_of_the_later_ones() -> None:
    """D07: nothing waits for a row that can never be sent."""
    order, (first, second, third) = in_flight(3)
    assert order.acknowledged(second) == []
    assert order.refused(first) == [second]
    assert order.acknowledged(third) == [third]


def test_nothing_of_a_key_is_sent_while_one_row_of_it_is_retried_alone() -> None:
    """D08, H2: the retry travels on another producer, so what comes after it must not overtake it."""
    order, (first, second) = in_flight(2)
    order.acknowledged(second)
    assert order.failed(first, alone=True) == [second]
    assert not order.may_send(b"k")
    assert order.first(first)
    assert order.acknowledged(first) == [first]
    assert order.may_send(b"k")


def test_a_row_is_retried_alone_only_when_it_is_the_first_open_one_of_its_key() -> None:
    order, (first, second) = in_flight(2)
    order.failed(second, alone=True)
    assert not order.first(second)
    order.failed(first)
    assert second.void
    assert not order.may_send(b"k")
    assert order.failed(second) == []
    assert order.may_send(b"k")


@given(script=st.lists(st.tuples(st.integers(0, 5), st.sampled_from(["ok", "lost", "late"])), max_size=60))
def test_whatever_is_lost_the_topic_ends_on_the_last_row_once_all_are_noted(script: list[tuple[int, str]]) -> None:
    """S16: rows of one key, any of them lost, acknowledged or landing unreported; the log's last record is the last row."""
    road = Road()
    for which, what in script:
        road.send_what_waits()
        road.report(which, what)
    while road.waiting or road.flying:
        road.send_what_waits()
        road.report(0, "ok")
    assert sorted(road.noted) == [0, 1, 2, 3, 4, 5]
    assert max(road.log)[1] == 5


class Road:
    """Six rows of one key, a producer that keeps their order, and a log."""

    def __init__(self) -> None:
        self.order = KeyOrder[Row]()
        self.waiting, self.noted, self.sent = [0, 1, 2, 3, 4, 5], list[int](), 0
        self.log = list[tuple[int, int]]()  #: place and row; places are in the order of sending, whenever the report comes
        self.flying, self.early = list[tuple[int, Row]](), list[Row]()

    def send_what_waits(self) -> None:
        away = {row.id for _, row in self.flying} | {row.id for row in self.early}
        for number in self.waiting:
            if number not in away and self.order.may_send(b"k"):
                self.sent += 1
                self.flying.append((self.sent, Row(number)))
                self.order.sent(self.flying[-1][1])

    def report(self, which: int, what: str) -> None:
        """A report comes in: "ok", "lost", or "late" (reported as lost, and in the log all the same)."""
        if not self.flying:
            return
        place, row = self.flying.pop(which % len(self.flying))
        if what != "lost":
            self.log.append((place, row.id))
        if row.void:
            self.order.acknowledged(row)
        elif what != "ok":
            for freed in self.order.failed(row):
                self.early.remove(freed)
        else:
            self.early.append(row)
            for counted in self.order.acknowledged(row):
                self.early.remove(counted)
                self.waiting.remove(counted.id)
                self.noted.append(counted.id)
