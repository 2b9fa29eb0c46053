"""The relay's side of the ledger: who owns a shard, what waits in it, the note of what left, and rows moved aside.

Nothing here waits for a broker, and nothing here decides whether a row has left: it writes what the relay was told.
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import timedelta
from operator import itemgetter
from typing import Any, NamedTuple, TypeAlias

from sqlalchemy import Connection, Engine

from counterfoil.ledger.arrays import Array, columns
from counterfoil.ledger.statements.relaying import ADOPT, CLAIM, LIVE, NOTE, NOTED, OLDEST, READ, REFUSE, REFUSED, RELEASE, RENEW


class Terms(NamedTuple):
    """How long a shard is owned without a renewal, and how long after it an old owner's sends may still arrive."""

    lease: timedelta
    silence: timedelta  #: one delivery time-out


#: An outbox row as it is read, a plain tuple because they come by the ten thousand: shard, id, kind, type, number, operation id
#: (text), revision, generation, key, value, headers (JSON of [name, text] pairs), traceparent, size in bytes (about). The value
#: of a command or a retry is its revision of the payload; None there means that there is none.
Waiting: TypeAlias = tuple[
    int,
    int,
    str,
    str,
    int | None,
    str | None,
    int,
    int,
    bytes | None,
    bytes | None,
    str | None,
    str | None,
    int,
]


class Wanted(NamedTuple):
    """What one read asks for."""

    floors: Mapping[int, int]  #: of each shard, in the order in which they are read: only ids above it
    share: int  #: rows of one shard
    rows: int
    bytes: int  #: after which no further row is read
    busy: Collection[int] = ()  #: ids that are not wanted
    blocked: Collection[str] = ()  #: roads that are not wanted: `state`, `dead_letter`, `command.TYPE`, `retry.TYPE`


class Noted(NamedTuple):
    """A row that its own delivery report says is in the topic."""

    shard: int
    id: int
    epoch: int
    partition: int
    offset: int


class Aside(NamedTuple):
    """A row that can never be sent."""

    shard: int
    id: int
    epoch: int
    reason: str
    size: int


class Moved(NamedTuple):
    """A row that was moved aside."""

    id: int
    kind: str
    type: str
    number: int | None
    revision: int
    reason: str


class Reader:
    """One connection for reading what waits: each read is one round trip, and between two reads no transaction is open.

    After an error the next read takes a new connection.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._connection: Connection | None = None

    def waiting(self, wanted: Wanted) -> list[Waiting]:
        """`read_waiting`, on this connection."""
        if self._connection is None:
            self._connection = self._engine.connect().execution_options(isolation_level="AUTOCOMMIT")
        try:
            return read_waiting(self._connection, wanted)
        except BaseException:
            broken, self._connection = self._connection, None
            broken.invalidate()
            broken.close()
            raise

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def live_relays(connection: Connection) -> int:
    """How many relays share the shards now."""
    return int(connection.execute(LIVE).scalar_one())


def renew_shards(connection: Connection, session: int, terms: Terms) -> dict[int, int]:
    """Renews what the session owns; answers the epoch of each such shard."""
    rows = connection.execute(RENEW, {"w_session": session, "w_lease": terms.lease, "w_silence": terms.silence})
    return {row.shard: row.epoch for row in rows}


def claim_shards(connection: Connection, session: int, count: int, terms: Terms) -> dict[int, int]:
    """Takes at most `count` free shards; answers the new epoch of each."""
    parameters = {"w_session": session, "w_lease": terms.lease, "w_silence": terms.silence, "w_count": count}
    return {row.shard: row.epoch for row in connection.execute(CLAIM, parameters)}


def release_shards(connection: Connection, session: int, shards: Collection[int], silence: timedelta) -> None:
    """Gives shards back; another may begin after `silence`, which is nothing where no send of ours is unresolved."""
    connection.execute(RELEASE, {"w_session": session, "w_shard": Array(sorted(shards)), "w_silence": silence})


def adopt_shards(connection: Connection, session: int, before: int) -> None:
    """Hands the shards of this process's session `before`, which is over, to its new one."""
    connection.execute(ADOPT, {"w_session": session, "w_before": before})


def read_waiting(connection: Connection, wanted: Wanted) -> list[Waiting]:
    """Rows that wait, ids of one shard ascending. Holds no lock."""
    parameters = {
        "r_shard": Array(wanted.floors),
        "r_floor": Array(wanted.floors.values()),
        "r_busy": Array(wanted.busy),
        "r_blocked": Array(wanted.blocked),
        "r_share": wanted.share,
        "r_limit": wanted.rows,
        "r_budget": wanted.bytes,
    }
    found: Any = connection.execute(READ, parameters).cursor  # the driver's own tuples
    rows: list[Waiting] = found.fetchall()
    rows.sort(key=itemgetter(1))
    return rows


def read_again(connection: Connection, ids: Sequence[tuple[int, int]]) -> list[Waiting]:
    """These rows (shard, id), of those that still wait."""
    found = []
    for shard, row_id in ids:
        wanted = Wanted({shard: row_id - 1}, 1, 1, 1)
        found += [row for row in read_waiting(connection, wanted) if row[1] == row_id]
    return found


def note(connection: Connection, session: int, reports: Sequence[Noted] | Sequence[tuple[int, int, int, int, int]]) -> int:
    """Notes rows as published; answers how many. Fewer than asked: a shard was taken over, or a row was noted before."""
    return connection.execute(NOTE, {**columns(NOTED, reports), "p_session": session}).rowcount


def refuse(connection: Connection, session: int, rows: Sequence[Aside]) -> list[Moved]:
    """Moves rows aside; answers those that were still ours to move."""
    moved = connection.execute(REFUSE, {**columns(REFUSED, rows), "p_session": session})
    return [Moved(*row) for row in moved]


def oldest_waiting(connection: Connection, shards: Collection[int]) -> float | None:
    """Seconds since the oldest waiting row of these shards was written; None where nothing waits."""
    age: float | None = connection.execute(OLDEST, {"r_shard": Array(shards)}).scalar_one()
    return age
