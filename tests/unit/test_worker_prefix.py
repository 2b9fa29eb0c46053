"""The contiguous prefix of finished offsets: what may be committed, whatever the order of finishing and the holes."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from counterfoil.streams.worker.prefix import Passed, Prefix


def _finish(prefix: Prefix, *offsets: int) -> None:
    prefix.finish(Passed(offset, None, 0) for offset in offsets)


def _taken(*offsets: int) -> Prefix:
    prefix = Prefix("t", 0)
    prefix.take(offsets)
    return prefix


def test_nothing_is_committed_before_something_is_finished() -> None:
    """S6."""
    assert _taken(0, 1, 2).position is None


def test_missing_offsets_neither_stop_a_commit_nor_let_it_pass_a_record_in_work() -> None:
    """D25, S6: offsets 0, 5 and 6 exist; 0 is done, 5 runs, 6 is done; then 5 is done."""
    prefix = _taken(0, 5, 6)
    _finish(prefix, 0)
    _finish(prefix, 6)
    assert prefix.position is not None
    assert prefix.position <= 5
    _finish(prefix, 5)
    assert prefix.position == 7
    assert len(prefix) == 0


def test_control_records_at_the_end_of_a_partition_are_passed_too() -> None:
    """D25: lag returns to 0 when the partition ends with a transaction's marker."""
    prefix = _taken(3, 4)
    prefix.reach(6)
    _finish(prefix, 4)
    assert prefix.position is None
    _finish(prefix, 3)
    assert prefix.position == 6


def test_an_end_that_was_reached_before_more_records_came_passes_none_of_them() -> None:
    """S6, D25."""
    prefix = _taken(0)
    prefix.reach(2)
    prefix.take([2, 3])
    _finish(prefix, 0)
    assert prefix.position == 1
    _finish(prefix, 3, 2)
    assert prefix.position == 4


def test_an_empty_partition_is_at_its_end() -> None:
    prefix = Prefix("t", 0)
    prefix.reach(17)
    assert prefix.position == 17


def test_a_record_that_is_finished_twice_is_passed_once() -> None:
    prefix = _taken(0, 1)
    _finish(prefix, 0, 0)
    _finish(prefix, 0)
    assert [one.offset for one in prefix.take_passed()] == [0]
    assert prefix.position == 1


def test_a_record_that_comes_again_in_one_assignment_is_not_waited_for_again() -> None:
    prefix = _taken(0, 1, 0, 1)
    _finish(prefix, 0, 1)
    assert prefix.position == 2
    assert len(prefix) == 0


def test_a_long_tail_behind_one_unfinished_record_is_counted_and_then_passed_at_once() -> None:
    """D35: its length is what back-pressure looks at; nothing of it stays afterwards."""
    prefix = _taken(*range(100_000))
    _finish(prefix, *range(1, 100_000))
    assert (prefix.position, len(prefix)) == (None, 100_000)
    _finish(prefix, 0)
    assert (prefix.position, len(prefix)) == (100_000, 0)
    assert len(prefix.take_passed()) == 100_000
    assert prefix.take_passed() == []


@given(st.sets(st.integers(0, 400), min_size=1), st.integers(0, 2**32), st.integers(1, 7))
def test_no_commit_ever_passes_an_unfinished_record(offsets: set[int], seed: int, step: int) -> None:
    """S6, D23, by property: any holes, any order, any sizes of batches."""
    order = sorted(offsets)
    random.Random(seed).shuffle(order)
    prefix = _taken(*sorted(offsets))
    left = set(offsets)
    while order:
        batch, order = order[:step], order[step:]
        left.difference_update(batch)
        _finish(prefix, *batch)
        first = min(left, default=max(offsets) + 1)
        done = [offset for offset in offsets if offset < first]
        assert prefix.position == (max(done) + 1 if done else None)
        assert len(prefix) == len([offset for offset in offsets if offset >= first])
