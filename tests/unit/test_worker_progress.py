"""Progress of a worker, by enumeration of what a partition may look like from one look to the next."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from counterfoil.streams.worker.progress import Progress, Seen, patience
from counterfoil.streams.worker.sweeper import Quiet

PLACE, OTHER = ("t", 0), ("t", 1)
T0 = datetime(2026, 1, 1, tzinfo=UTC)
LEASE = timedelta(seconds=30)


def _seen(position: int = 3, end: int = 9, finished: int = 0) -> Seen:
    return Seen(position, end, finished, within=10.0)


def test_lag_without_anything_finished_for_too_long_is_no_progress() -> None:
    """L6, D28."""
    progress = Progress()
    assert progress.look(0, {PLACE: _seen()}) == []
    assert progress.look(10, {PLACE: _seen()}) == []
    assert progress.look(10.1, {PLACE: _seen()}) == [PLACE]


def test_a_partition_without_lag_may_stand_still_for_ever() -> None:
    """L6: an idle worker is no sick one."""
    progress = Progress()
    for now in (0, 100, 1000):
        assert progress.look(now, {PLACE: _seen(9, 9)}) == []
    assert progress.look(1001, {PLACE: _seen(9, 12)}) == []
    assert progress.look(1012, {PLACE: _seen(9, 12)}) == [PLACE]


def test_records_finished_behind_a_slow_head_are_progress() -> None:
    """D35: the head has its own time-out, and the rest flows."""
    progress = Progress()
    for now in range(0, 100, 5):
        assert progress.look(now, {PLACE: _seen(finished=now)}) == []


def test_a_silent_partition_is_noticed_beside_a_busy_one() -> None:
    """D32: each partition is watched alone."""
    progress = Progress()
    for now in (0, 6):
        assert progress.look(now, {PLACE: _seen(now, now + 100), OTHER: _seen()}) == []
    assert progress.look(12, {PLACE: _seen(12, 112), OTHER: _seen()}) == [OTHER]


def test_a_partition_that_comes_back_begins_anew() -> None:
    """D29: nothing is held against a new owner."""
    progress = Progress()
    progress.look(0, {PLACE: _seen()})
    progress.look(5, {})
    assert progress.look(12, {PLACE: _seen()}) == []


def test_a_call_that_uses_its_whole_time_out_is_no_fault_of_the_worker() -> None:
    """L6: types with long effects are waited for longer."""
    assert patience(120, 300) > 300
    assert patience(120, 10) == 120


def test_sweepers_wait_one_lease_after_they_first_reach_a_restarted_database() -> None:
    """L5, D59: time in which nobody could write a heartbeat does not count."""
    quiet = Quiet(LEASE)
    assert quiet.may_sweep(T0, T0 + timedelta(hours=1))
    restarted = T0 + timedelta(hours=2)
    reached = restarted + timedelta(minutes=1)
    assert not quiet.may_sweep(restarted, reached)
    assert not quiet.may_sweep(restarted, reached + LEASE - timedelta(seconds=1))
    assert quiet.may_sweep(restarted, reached + LEASE)


def test_a_sweeper_that_begins_on_a_database_just_started_waits_for_the_leases_on_it() -> None:
    """L5."""
    quiet = Quiet(LEASE)
    assert not quiet.may_sweep(T0, T0 + timedelta(seconds=2))
    assert quiet.may_sweep(T0, T0 + LEASE)
