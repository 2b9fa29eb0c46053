"""Where the relay reads on in each shard: a floor that moves past what it has read, and goes back for what committed late.

Ids are not commit order, so a floor is a saving and never a fact: a shard is read from zero again every few seconds (D01), and
while there is no backlog the floor stays about a second behind. Nothing waits for a hole that a rolled-back id leaves (D02).
Pure.
"""

from collections.abc import Collection, Iterable
from typing import NamedTuple

BEHIND = 1.0  #: seconds that the floor stays behind while nothing piles up


class Reading(NamedTuple):
    """What to ask for in one read."""

    floors: dict[int, int]  #: in the order in which the shards are to be read
    share: int  #: rows of one shard
    with_busy: bool  #: rows in flight lie above these floors: ask to leave them out
    from_zero: bool = False


class Floors:
    """The floors of the shards that this relay owns. Times are seconds of one monotonic clock."""

    def __init__(self, rows: int, every: float) -> None:
        self.rows, self.every = rows, every
        self._newest: dict[int, int] = {}  #: highest id read
        self._safe: dict[int, int] = {}  #: the same, a second or two ago
        self._next_safe: dict[int, int] = {}
        self._moved_at = 0.0
        self._zero_at: float | None = None  #: when the last read from zero was; None: the next one is
        self._full: dict[int, None] = {}  #: shards that gave their whole share last time
        self.backlog = False

    def ask(self, now: float, shards: Collection[int]) -> Reading:
        """Full shards come last, so that a backlog in one of them delays no other."""
        self._keep(set(shards))
        if now - self._moved_at >= BEHIND:
            self._safe, self._next_safe, self._moved_at = self._next_safe, dict(self._newest), now
        from_zero = self._zero_at is None or now - self._zero_at >= self.every
        if from_zero:
            self._zero_at = now
        known = {} if from_zero else self._newest if self.backlog else self._safe
        order = sorted(shards, key=lambda shard: (shard in self._full, shard))
        even = -(-self.rows // max(1, len(order)))
        share = max(even, self.rows // max(1, len(self._full))) if self.backlog else even
        return Reading({shard: known.get(shard, 0) for shard in order}, share, from_zero or not self.backlog, from_zero)

    def answered(self, reading: Reading, rows: Iterable[tuple[int, int]], *, cut: bool) -> None:
        """The (shard, id) pairs that the read gave, ids of one shard ascending; `cut`: it ended early, there is more."""
        newest: dict[int, int] = {}
        counts: dict[int, int] = {}
        for shard, row_id in rows:
            newest[shard] = row_id
            counts[shard] = counts.get(shard, 0) + 1
        self._full = {shard: None for shard, count in counts.items() if count >= reading.share}
        self.backlog = cut or bool(self._full)
        for shard, row_id in newest.items():
            # A read from zero that was cut found more than it could take below the floor: go on from there, also downwards.
            down = reading.from_zero and (cut or shard in self._full)
            if down or row_id > self._newest.get(shard, 0):
                self._newest[shard] = row_id

    def back(self, shard: int, row_id: int) -> None:
        """This row must be read again."""
        for floors in (self._newest, self._safe, self._next_safe):
            if floors.get(shard, 0) >= row_id:
                floors[shard] = row_id - 1

    def from_zero(self) -> None:
        """Read everything again, from the next read on."""
        self._zero_at = None
        self._newest, self._safe, self._next_safe = {}, {}, {}

    def _keep(self, shards: set[int]) -> None:
        """A shard that was ours before, and is again, begins from zero."""
        for floors in (self._newest, self._safe, self._next_safe):
            for gone in floors.keys() - shards:
                del floors[gone]


class Pace:
    """How long to wait before the next read: short after a find, then longer and longer up to a limit."""

    def __init__(self, shortest: float, longest: float) -> None:
        self.shortest, self.longest = shortest, longest
        self.wait = shortest

    def found(self, rows: int) -> float:
        """The wait after a read that gave so many new rows."""
        self.wait = self.shortest if rows else min(self.wait * 1.5, self.longest)
        return self.wait
