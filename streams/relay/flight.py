"""The rows that were handed to a producer and are not settled yet: how many, and how large.

A row is in flight from its sending until its note is written, it was moved aside, or it goes back to be read again. It holds
no value: a row that must be sent again is read again.
"""

from collections.abc import Iterable

from counterfoil.streams.relay.noting import Report
from counterfoil.streams.relay.outgoing import Lane


class Sent:
    """One row in flight."""

    __slots__ = ("alone", "epoch", "id", "key", "lane", "offset", "partition", "shard", "size", "void")

    def __init__(self, lane: Lane, shard: int, row_id: int, epoch: int, key: bytes | None, size: int) -> None:
        self.lane, self.shard, self.id, self.epoch, self.key, self.size = lane, shard, row_id, epoch, key, size
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
        return {sent.shard for sent in self._rows.values()}

    def take_off(self, sent: Sent) -> None:
        self._rows[sent.id] = sent
        self._size += sent.size

    def land(self, row_id: int) -> Sent | None:
        """The row is settled, or goes back."""
        sent = self._rows.pop(row_id, None)
        if sent is not None:
            self._size -= sent.size
        return sent

    def land_all(self, ids: Iterable[int]) -> list[Sent]:
        return [sent for row_id in ids if (sent := self.land(row_id)) is not None]
