"""The rows that were handed to a producer and are not settled yet: how many, how large, of which shards.

A row is in flight from its sending until its note is written, it was moved aside, or it goes back to be read again. It holds
no value: a row that must be sent again is read again.
"""

from collections import Counter
from collections.abc import Iterable

from counterfoil.ledger.relaying import Waiting
from counterfoil.streams.noting import Report


class Sent:
    """One row in flight."""

    __slots__ = ("alone", "epoch", "id", "key", "kind", "offset", "partition", "road", "shard", "size", "type", "void")

    def __init__(self, row: Waiting, epoch: int, road: str) -> None:
        self.shard, self.id, self.kind, self.type = row.shard, row.id, row.kind, row.type
        self.key, self.size, self.epoch, self.road = row.key, row.size, epoch, road
        self.void = False  #: its acknowledgement does not count any more
        self.alone = False  #: it is being retried alone
        self.partition = self.offset = -1  #: where its own report says that it is

    @property
    def report(self) -> Report:
        """What is noted of it."""
        return self.shard, self.id, self.epoch, self.partition, self.offset


class Flight:
    """All rows in flight, by id."""

    def __init__(self, rows: int, size: int) -> None:
        self._most, self._largest = rows, size
        self._rows: dict[int, Sent] = {}
        self._size = 0
        self._shards: Counter[int] = Counter()

    def __len__(self) -> int:
        return len(self._rows)

    def __contains__(self, row_id: int) -> bool:
        return row_id in self._rows

    @property
    def has_room(self) -> bool:
        """Whether another read may be sent off: this, not the backlog, bounds the memory."""
        return len(self._rows) < self._most and self._size < self._largest

    @property
    def ids(self) -> list[int]:
        return list(self._rows)

    @property
    def shards(self) -> set[int]:
        """Shards with a row in flight."""
        return {shard for shard, count in self._shards.items() if count}

    def take_off(self, sent: Sent) -> None:
        self._rows[sent.id] = sent
        self._size += sent.size
        self._shards[sent.shard] += 1

    def land(self, row_id: int) -> Sent | None:
        """The row is settled, or goes back."""
        sent = self._rows.pop(row_id, None)
        if sent is not None:
            self._size -= sent.size
            self._shards[sent.shard] -= 1
        return sent

    def land_all(self, ids: Iterable[int]) -> list[Sent]:
        return [sent for row_id in ids if (sent := self.land(row_id)) is not None]
