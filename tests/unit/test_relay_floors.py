"""Where the relay reads on: every row is found, whatever the order of its commit, and a backlog in one shard delays no other."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from counterfoil.streams.relay.floors import Floors, Pace, Reading


class Table:
    """Rows that become visible when they commit."""

    def __init__(self) -> None:
        self.rows: set[tuple[int, int]] = set()

    def read(self, reading: Reading, most: int, busy: set[int]) -> list[tuple[int, int]]:
        found: list[tuple[int, int]] = []
        for shard, floor in reading.floors.items():
            ids = sorted(n for s, n in self.rows if s == shard and n > floor and not (reading.with_busy and n in busy))
            found += [(shard, n) for n in ids[: reading.share]]
        return sorted(found[:most], key=lambda row: row[1])


def test_a_row_that_commits_late_with_a_smaller_id_is_read() -> None:
    """D01."""
    floors, table = Floors(10, every=5.0), Table()
    table.rows = {(3, 2)}
    reading = floors.ask(10.0, [3])
    floors.answered(reading, table.read(reading, 10, set()), cut=False)
    table.rows = {(3, 1)}
    reading = floors.ask(16.0, [3])
    assert table.read(reading, 10, set()) == [(3, 1)]


def test_a_hole_is_not_waited_for() -> None:
    """D02: ids 1 and 3 exist, 2 was rolled back."""
    floors, table = Floors(10, every=5.0), Table()
    table.rows = {(0, 1), (0, 3)}
    assert table.read(floors.ask(0.0, [0]), 10, set()) == [(0, 1), (0, 3)]


def test_full_shards_are_read_last_and_share_what_a_read_can_take() -> None:
    """L3."""
    floors = Floors(100, every=5.0)
    first = floors.ask(0.0, [0, 1, 2, 3])
    assert first.share == 25
    floors.answered(first, [(0, n) for n in range(1, 26)], cut=False)
    second = floors.ask(0.1, [0, 1, 2, 3])
    assert list(second.floors) == [1, 2, 3, 0]
    assert second.share == 100
    assert second.floors[0] == 25


def test_a_shard_that_was_lost_and_is_ours_again_begins_from_zero() -> None:
    floors = Floors(10, every=100.0)
    reading = floors.ask(0.0, [1])
    floors.answered(reading, [(1, n) for n in range(1, 11)], cut=True)
    assert floors.ask(0.1, [1]).floors[1] == 10
    floors.ask(0.2, [])
    assert floors.ask(0.3, [1]).floors[1] == 0


@given(
    late=st.lists(st.tuples(st.integers(0, 3), st.integers(1, 60)), max_size=40),
    lost=st.sets(st.integers(1, 60), max_size=10),
)
def test_every_row_is_read_in_the_end_and_a_row_that_goes_back_is_read_again(late: list[tuple[int, int]], lost: set[int]) -> None:
    """L2: whichever rows commit late and whichever have to be sent again, the outbox empties."""
    floors, table, now = Floors(7, every=5.0), Table(), 0.0
    table.rows = {(n % 4, n) for n in range(100, 140)}
    arrivals, again = list(late), set(lost)
    for _ in range(200):
        reading = floors.ask(now, [0, 1, 2, 3])
        rows = table.read(reading, 7, set())
        floors.answered(reading, rows, cut=len(rows) >= 7)
        for shard, row_id in rows:
            if row_id in again:
                again.discard(row_id)
                floors.back(shard, row_id)
            else:
                table.rows.discard((shard, row_id))
        if arrivals:
            table.rows.add(arrivals.pop())
        now += 0.3
    assert not table.rows


def test_the_wait_grows_while_nothing_comes_and_is_short_again_after_a_find() -> None:
    pace = Pace(0.005, 0.5)
    waits = [pace.found(0) for _ in range(20)]
    assert waits == sorted(waits)
    assert waits[-1] == 0.5
    assert pace.found(1) == 0.005
