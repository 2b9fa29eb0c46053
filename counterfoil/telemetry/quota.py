"""How often the same thing may be said: once in a while, with the count of what was left out since. Pure: the time is handed in.

It never drops the first of its kind, and it never grows past a bound, whatever the kinds are.
"""

from collections.abc import Iterator
from dataclasses import dataclass

EVERY = 30.0  #: seconds between two lines of one kind
KINDS = 1_000  #: kinds that are remembered; beyond them the one that was not heard for longest is forgotten


Kind = tuple[str, str]  #: who says it, and what


@dataclass(slots=True)
class _Said:
    said_at: float
    left_out: int = 0


class Quota:
    """One for each output; not for two threads at once."""

    def __init__(self, every: float = EVERY, kinds: int = KINDS) -> None:
        self._every, self._most = every, kinds
        self._kinds: dict[Kind, _Said] = {}

    def say(self, kind: Kind, now: float) -> int | None:
        """How many of its kind were left out since the last one that was said; None: leave this one out too. `now` in seconds."""
        known = self._kinds.pop(kind, None)
        if known is not None and now - known.said_at < self._every:
            known.left_out += 1
            self._kinds[kind] = known
            return None
        while len(self._kinds) >= self._most:
            del self._kinds[next(iter(self._kinds))]
        self._kinds[kind] = _Said(now)
        return known.left_out if known else 0

    def rest(self) -> Iterator[tuple[Kind, int]]:
        """Each kind of which some were left out and never told, once."""
        for kind, known in self._kinds.items():
            if known.left_out:
                yield kind, known.left_out
                known.left_out = 0
