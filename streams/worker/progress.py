"""Whether a worker makes progress: lag, and nothing finished for too long, means that it does not (L6, D28, D32).

Pure: positions, ends and time are handed in. Each partition is watched alone, or one that is never fetched again would hide
behind the others.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

Place = tuple[str, int]  #: topic and partition


class Seen(NamedTuple):
    """A partition as it was looked at."""

    position: int  #: every record below it is finished; the committed offset or the beginning where none was finished yet
    end: int  #: the offset that the next record will get
    finished: int  #: records finished since the assignment: behind a head that takes its time, the rest may still flow
    within: float  #: seconds without progress that are too many; longer for types whose effects may take long


class Progress:
    """Remembers for each assigned partition when it last got on."""

    def __init__(self) -> None:
        self._known: dict[Place, tuple[int, int, float]] = {}

    def look(self, now: float, seen: Mapping[Place, Seen]) -> list[Place]:
        """The partitions that have lag and did not get on for too long. Those that are gone from `seen` are forgotten."""
        stuck = []
        known: dict[Place, tuple[int, int, float]] = {}
        for place, (position, end, finished, within) in seen.items():
            before = self._known.get(place)
            moved = before is None or before[0] != position or before[1] != finished
            since = now if moved or end <= position or before is None else before[2]
            known[place] = (position, finished, since)
            if now - since > within:
                stuck.append(place)
        self._known = known
        return stuck


def patience(within: float, timeout: float, run_time_margin: float = 30.0) -> float:
    """How long a partition may stand still: a call that uses its whole time-out is no fault of the worker."""
    return max(within, timeout + run_time_margin)
