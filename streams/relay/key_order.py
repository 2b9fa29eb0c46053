"""The acknowledgement rule of the compacted topic: there the last record of a key wins, so the order of what is noted matters.

A row's acknowledgement counts only once every earlier row of its key that was sent is settled for good (acknowledged or
refused). If an earlier one has to be sent again, the later ones do too, after it, whatever their own reports say. Pure: it
sends nothing.
"""

from collections import Counter, deque
from typing import Generic, Protocol, TypeVar


class Keyed(Protocol):
    """A row in flight, as this rule sees it."""

    key: bytes | None
    void: bool  #: its acknowledgement does not count any more


S = TypeVar("S", bound=Keyed)


class KeyOrder(Generic[S]):
    """The rows in flight of each key, in the order in which they were sent."""

    def __init__(self) -> None:
        self._chains: dict[bytes | None, deque[S]] = {}
        self._early: set[int] = set()  #: rows (by identity) acknowledged while an earlier one is open
        self._alone: set[bytes | None] = set()
        self._void: Counter[bytes | None] = Counter()  #: void rows of a key that have no report yet

    def may_send(self, key: bytes | None) -> bool:
        """False while a row of this key is retried alone, or a void one has no report: else a later one might overtake it."""
        return key not in self._alone and key not in self._void

    def sent(self, row: S) -> None:
        """A row was handed to the producer."""
        self._chains.setdefault(row.key, deque()).append(row)

    def acknowledged(self, row: S) -> list[S]:
        """Its own report says that it is in the topic; answers the rows that count now, in order."""
        if row.void:
            return self._void_reported(row)
        self._alone.discard(row.key)
        chain = self._chains[row.key]
        if chain[0] is not row:
            self._early.add(id(row))
            return []
        counted = [chain.popleft()]
        counted += self._drain(chain)
        self._tidy(row.key, chain)
        return counted

    def refused(self, row: S) -> list[S]:
        """It can never be sent and leaves for good; answers the later rows that count now."""
        if row.void:
            return self._void_reported(row)
        self._alone.discard(row.key)
        chain = self._chains[row.key]
        chain.remove(row)
        counted = self._drain(chain)
        self._tidy(row.key, chain)
        return counted

    def failed(self, row: S, *, alone: bool = False) -> list[S]:
        """It must be sent again; answers the later rows of its key that are acknowledged already and must be sent again too.

        Those still without a report become void as well, and are free when it comes; until then nothing of the key is sent. With
        `alone` the row keeps its place: rows of its key wait until it is refused, has failed or has arrived by itself.
        """
        if row.void:
            return self._void_reported(row)
        self._alone.discard(row.key)
        chain = self._chains[row.key]
        freed = []
        while chain and chain[-1] is not row:
            later = chain.pop()
            later.void = True
            if id(later) in self._early:
                self._early.discard(id(later))
                freed.append(later)
            else:
                self._void[row.key] += 1
        if alone:
            self._alone.add(row.key)
        else:
            chain.pop()
            self._tidy(row.key, chain)
        return freed[::-1]

    def first(self, row: S) -> bool:
        """Whether no earlier row of its key is open: only then may it be retried alone."""
        return not row.void and row.key in self._chains and self._chains[row.key][0] is row

    def __len__(self) -> int:
        return sum(map(len, self._chains.values()))

    def _drain(self, chain: deque[S]) -> list[S]:
        counted = []
        while chain and id(chain[0]) in self._early:
            self._early.discard(id(chain[0]))
            counted.append(chain.popleft())
        return counted

    def _void_reported(self, row: S) -> list[S]:
        self._void[row.key] -= 1
        if not self._void[row.key]:
            del self._void[row.key]
        return []

    def _tidy(self, key: bytes | None, chain: deque[S]) -> None:
        if not chain:
            del self._chains[key]
