"""The marks of records being decoded, by partition: written before, wiped after, and read by whoever takes the partition over.

A mark that is still there tells that its process ended in between. Whom that accuses is core's to say.
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import Connection

from counterfoil.core.suspicion import INNOCENT, Suspicion, after_death
from counterfoil.ledger.arrays import Array, columns
from counterfoil.ledger.statements.decoding import FINISH, LIVING, MAKE, MARK, MARKED, PLACE, TAKE, TAKEN

Place = tuple[str, int]  #: topic and partition


class Taken(NamedTuple):
    """A partition's row, taken over. `died`: how many records the last owner left in the middle of decoding; 0: none."""

    epoch: int
    suspicion: Suspicion
    died: int


class Mark(NamedTuple):
    """Records of a partition that are being decoded, `first` to `last`, by the owner of `epoch`."""

    topic: str
    partition: int
    epoch: int
    first: int
    last: int

    @property
    def place(self) -> Place:
        return self.topic, self.partition


class Living(NamedTuple):
    """A session that is not known to be dead. `seconds` until its lease ends; `in_order`: it ended by itself."""

    until: datetime
    seconds: float
    in_order: bool


def take(connection: Connection, session: int, own: Collection[int], places: Collection[Place]) -> dict[Place, Taken]:
    """Become the owner of these partitions' rows. `own` are the sessions of this very process, which is alive."""
    asked = columns(PLACE, sorted(places))
    connection.execute(MAKE, asked)
    taken: dict[Place, Taken] = {}
    for row in connection.execute(TAKE, asked).all():
        suspicion, died = _suspicion(row), 0
        if row.first_offset is not None and row.session not in own and not row.in_order:
            suspicion = after_death(suspicion, row.first_offset, row.last_offset, row.session)
            died = row.last_offset - row.first_offset + 1
        said = {"topic": row.topic, "partition": row.partition, "session": session, **_columns(suspicion)}
        taken[row.topic, row.partition] = Taken(connection.execute(TAKEN, said).scalar_one(), suspicion, died)
    return taken


def mark(connection: Connection, session: int, marks: Sequence[Mark], *, durable: bool) -> set[Place]:
    """Write what is being decoded from here on; answers the partitions that are no longer the asker's.

    `durable` False: the commit of this transaction does not wait for the disk; nothing else belongs into it.
    """
    asked = {**columns(MARKED, marks), "d_session": session, "d_commit": "on" if durable else "off"}
    there = {(row.topic, row.partition) for row in connection.execute(MARK, asked)}
    return {one.place for one in marks} - there


def finish(connection: Connection, marks: Sequence[Mark]) -> None:
    """These are decoded."""
    if marks:
        connection.execute(FINISH, columns(MARKED, marks))


def living(connection: Connection, sessions: Collection[int]) -> Mapping[int, Living]:
    """Those of the sessions that may be alive, or ended in order."""
    rows = connection.execute(LIVING, {"d_sessions": Array(sessions)})
    return {row.id: Living(row.lease_until, row.seconds, row.in_order) for row in rows}


def _suspicion(row: Any) -> Suspicion:
    if row.suspect_first is None:
        return INNOCENT
    return Suspicion(row.suspect_first, row.suspect_last, row.died_together, row.named_offset, tuple(row.died_alone))


def _columns(of: Suspicion) -> dict[str, Any]:
    suspected = of.last >= of.first
    return {
        "suspect_first": of.first if suspected else None,
        "suspect_last": of.last if suspected else None,
        "died_together": of.together,
        "named_offset": of.named,
        "died_alone": list(of.alone),
    }
