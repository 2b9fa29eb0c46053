"""Which offset of a partition may be committed: one past the last record of the contiguous run of finished ones.

Pure bookkeeping. A record is finished when its operation's outcome, or the record itself, is in the ledger; a commit never passes
one that is not. It must never guess about an offset that was not handed in: missing offsets (compaction, transaction markers) are
simply not there (D25).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from typing import NamedTuple
from uuid import UUID


class Passed(NamedTuple):
    """A record that a commit may pass, for the log: its operation where one is known."""

    offset: int
    operation_id: UUID | None
    attempt: int


class Prefix:
    """One partition, from its assignment to its revocation. A late answer after that finishes nothing here.

    Not thread-safe: whoever shares it holds a lock around it.
    """

    __slots__ = ("_done", "_end", "_last", "_passed", "_waiting", "partition", "position", "revoked", "topic")

    def __init__(self, topic: str, partition: int) -> None:
        self.topic = topic
        self.partition = partition
        self.position: int | None = None  #: the offset that may be committed; None: nothing was finished yet
        self.revoked = False  #: nothing more is begun from this partition
        self._waiting: deque[int] = deque()  # taken and not passed, rising
        self._done: dict[int, Passed] = {}  # finished, but behind one that is not
        self._passed: list[Passed] = []
        self._last = -1
        self._end = -1

    def __len__(self) -> int:
        """Records taken that no commit may pass yet: the bound for back-pressure (D35)."""
        return len(self._waiting)

    def take(self, offsets: Sequence[int]) -> None:
        """Records came, in the order of their offsets. One that came before in this assignment is not counted again."""
        for offset in offsets:
            if offset > self._last:
                self._last = offset
                self._waiting.append(offset)

    def finish(self, finished: Iterable[Passed]) -> None:
        """These records need nothing more; in any order, each any number of times."""
        done, waiting = self._done, self._waiting
        head = waiting[0] if waiting else self._last + 1
        for one in finished:
            if one.offset >= head:
                done[one.offset] = one
        while waiting and (one_passed := done.pop(waiting[0], None)) is not None:
            self._passed.append(one_passed)
            self.position = waiting.popleft() + 1
        if not waiting:
            done.clear()
            self._reach_end()

    def reach(self, end: int) -> None:
        """The partition has no record below `end` that did not come: control records at its end are passed too (D25)."""
        self._end = max(self._end, end)
        if not self._waiting:
            self._reach_end()

    def take_passed(self) -> list[Passed]:
        """The records that the position has passed since the last call."""
        passed, self._passed = self._passed, []
        return passed

    def _reach_end(self) -> None:
        if self._end > max(self._last, self.position or 0) and self._last < self._end:
            self.position = self._end
