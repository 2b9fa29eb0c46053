"""Held records: let go when a live worker can do them or a person says so, and given up at their deadline.

Letting one go makes its operation due: the due sweeper writes its command record, with the same bytes, into the outbox. Each is
one transaction on at most `limit` records; whatever is killed, a record is let go once or still held.
"""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import NamedTuple
from uuid import UUID

import orjson
from sqlalchemy import Connection

from counterfoil.core import decisions
from counterfoil.core.reasons import Reason
from counterfoil.core.shards import shard
from counterfoil.core.standing import Rules
from counterfoil.core.states import WAITING
from counterfoil.ledger.arrays import Array, columns
from counterfoil.ledger.decided import Decided
from counterfoil.ledger.moves import Writer, Written, lock
from counterfoil.ledger.statements.holding import ADOPT, END, GIVE_UP, GIVEN_UP, OVER, RELEASE_CAPABLE, RELEASE_NAMED


class LetGo(NamedTuple):
    """A record that is held no more, why it was, and whether a live worker says that it can do it."""

    cause: UUID
    type: str
    reason: str
    capable: bool


class Adopted(NamedTuple):
    """A record whose operation turned up. `own`: it has these bytes, and the record is its own now."""

    cause: UUID
    type: str
    reason: str
    own: bool


def release_capable(connection: Connection, *, limit: int) -> list[LetGo]:
    """Lets go what a live worker says that it can do: its type, and the schema id that the value begins with."""
    return [LetGo(*row) for row in connection.execute(RELEASE_CAPABLE, {"h_limit": limit})]


def release(connection: Connection, causes: Sequence[UUID]) -> list[LetGo]:
    """Lets go these, whoever can do them; answers those that were held and have an operation."""
    if not causes:
        return []
    return [LetGo(*row) for row in connection.execute(RELEASE_NAMED, columns(["h_id"], [(cause,) for cause in causes]))]


def adopt(connection: Connection, claims: Mapping[UUID, UUID]) -> list[Adopted]:
    """By cause the operation that each claims: answers those that the ledger has by now.

    An own one that only lacked its operation is let go; one that no worker could read is held on, for its operation.
    """
    if not claims:
        return []
    return [Adopted(*row) for row in connection.execute(ADOPT, columns(["h_id", "h_operation"], claims.items()))]


def give_up(
    connection: Connection, records: Sequence[tuple[UUID, bytes | None, Sequence[tuple[str, str]]]], due_in: timedelta
) -> int:
    """Held records that are not what the ledger wrote: quarantined, with their dead letters. Of each: cause, key, headers."""
    if not records:
        return 0
    rows = [(cause, shard(key or cause.bytes), orjson.dumps(words).decode()) for cause, key, words in records]
    asked = {"g_reason": Reason.DIGEST_MISMATCH.value, "g_due": due_in}
    return len(connection.execute(GIVE_UP, {**columns(GIVEN_UP, rows), **asked}).all())


def end_holds(
    connection: Connection, writer: Writer, rules_by_type: Mapping[str, Rules], *, limit: int
) -> tuple[int, list[Written]]:
    """Ends holds whose deadline has come: their operations are set aside, those that wait; how many, and what was written."""
    rows = connection.execute(OVER, {"h_types": Array(rules_by_type), "h_limit": limit}).all()
    locked = lock(connection, {row.number for row in rows})
    decided: dict[int, Decided] = {}
    ended: list[UUID] = []
    unknown: list[UUID] = []
    for row in rows:
        standing = locked.standings.get(row.number)
        if standing is None:
            ended.append(row.id)
            unknown.append(row.id)
            continue
        facts = locked.facts[row.number]
        move = decisions.set_aside(rules_by_type.get(facts.type), standing, Reason.HOLD_OVER.value)
        if move is None and standing.state in WAITING:
            continue  # in doubt since it was picked, and its type is not here
        ended.append(row.id)
        if move is not None:
            decided[row.number] = Decided(standing, facts, move, detail={"cause": move.cause or row.reason})
    written = writer.write(connection, locked.now, list(decided.values()))
    if ended:
        connection.execute(END, {"h_id": Array(ended), "h_unknown": Array(unknown)})
    return len(ended), written
