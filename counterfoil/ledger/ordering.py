"""Order per entity in the ledger: what moves and what comes free when an operation leaves its place, and who is told to wait.

Called from the one place that writes transitions, so that whoever makes one (worker, callback, caller, person) moves the head in
the same transaction. What a turn is, core decides; nothing here does.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import Connection

from counterfoil.core.chain import event_content
from counterfoil.core.decisions import ordering
from counterfoil.core.decisions.ordering import Turn
from counterfoil.core.reasons import Reason
from counterfoil.core.roads import COMMAND, RETRY
from counterfoil.core.shards import shard
from counterfoil.core.standing import Rules, Standing
from counterfoil.core.states import State
from counterfoil.ledger.arrays import Array, columns
from counterfoil.ledger.names import Ledger
from counterfoil.ledger.statements.ordering import HOLD, LOCK_LINES, MOVE_HEADS, NEXT, OLDER, PLACE, SEND_ONLY, TELL_TO_WAIT
from counterfoil.ledger.statements.sweeping import LOOK_LATER, SEND, SEND_AGAIN

#: How soon the sweeper looks for the record of an operation whose turn came, where one should be under way.
LOOK_AFTER = timedelta(seconds=60)
#: How long one that waits for another is left alone: whoever frees the entity sends its record, so this only finds what was lost.
LOOK_AT_WAITING = timedelta(days=1)


class Left(NamedTuple):
    """An operation of an ordered type that was moved. `entity` None: it has no order."""

    number: int
    entity: UUID | None
    position: int | None
    to: State


#: No line is counted further than this.
MOST_COUNTED = 10_000


class Place(NamedTuple):
    """Where an operation that is not over stands in its entity, as people are shown it."""

    strict: bool
    position: int  #: its number in the entity (Strict), or its version (LatestWins)
    behind: UUID | None  #: the operation that it waits for
    behind_state: str | None
    before: int  #: how many are before it in a Strict line; up to MOST_COUNTED
    waiting: int  #: how many wait behind it; up to MOST_COUNTED


def place_of(connection: Connection, number: int) -> Place | None:
    """None for an operation without an order, and for one that holds nobody up any more."""
    row = connection.execute(PLACE, {"p_number": number, "p_most": MOST_COUNTED}).one_or_none()
    return None if row is None else Place(*row)


def hold(connection: Connection, numbers: Iterable[int]) -> None:
    """Locks operations and then their entities, so that what follows sees all that was committed before (H1)."""
    connection.execute(HOLD, columns(["l_number"], [(number,) for number in sorted(set(numbers))]))


def follow(connection: Connection, ledger: Ledger, now: datetime, left: Sequence[Left]) -> None:
    """Moves the heads of the entities that these moves concern, and makes due what comes free: its record is sent at once."""
    freed = {one.entity for one in left if one.entity is not None and ordering.frees(one.to)}
    if not freed:
        return
    entities = {"w_entity": Array(sorted(freed))}
    connection.execute(LOCK_LINES, entities)
    tops: dict[UUID, int] = {}
    for one in left:
        if one.entity is not None and one.position is not None and ordering.passes(one.to):
            tops[one.entity] = max(one.position, tops.get(one.entity, one.position))
    if tops:
        connection.execute(MOVE_HEADS, columns(["h_entity", "h_top"], list(tops.items())))
    rows = connection.execute(NEXT, {**entities, "w_moved": Array(one.number for one in left)}).all()
    told = [row for row in rows if row.told]
    for free in (True, False):
        _send(connection, ledger, now, [row for row in told if row.free is free], noted=free)
    soon = now + LOOK_AFTER
    later = [(row.number, soon) for row in rows if row.free and not row.told and row.due_at > soon]
    if later:
        connection.execute(LOOK_LATER, columns(["p_number", "p_due"], later))


def _send(connection: Connection, ledger: Ledger, now: datetime, rows: Sequence[Any], *, noted: bool) -> None:
    """The command records of operations whose turn came."""
    reason = Reason.TURN_CAME.value
    content = event_content(ledger.secret, "sent_again", reason, b"")
    for state, kind in ((State.QUEUED, COMMAND), (State.RETRY_WAIT, RETRY)):
        parameters = [
            (row.number, shard(key), row.operation_id, row.type, row.revision, row.generation, key, row.traceparent, content)
            for row in rows
            if row.state == state
            for key in (row.entity.encode(),)
        ]
        if not parameters:
            continue
        values = {**columns(SEND, parameters), "s_now": now, "s_kind": kind}
        if noted:
            common = {"s_wait": LOOK_AFTER, "s_secret": ledger.secret_id, "s_reason": reason}
            connection.execute(SEND_AGAIN, {**values, **common})
        else:
            del values["s_content"]
            connection.execute(SEND_ONLY, values)


def older(connection: Connection, places: Sequence[tuple[UUID, int]]) -> list[int]:
    """The numbers of older versions that wait in vain beside these of the same entities; their rows are locked."""
    if not places:
        return []
    return list(connection.execute(OLDER, columns(["v_entity", "v_version"], places)).scalars())


def tell_to_wait(connection: Connection, waiting: Sequence[tuple[int, datetime]]) -> None:
    """These operations wait for another of their entity; each is looked at again at its time."""
    if waiting:
        connection.execute(TELL_TO_WAIT, columns(["p_number", "p_due"], waiting))


def look_at(rules: Rules, turn: Turn, standing: Standing, now: datetime) -> datetime | None:
    """When an operation that has to wait is looked at again; None where its entity lets it run."""
    if turn.free(rules, standing, now):
        return None
    by_time = turn.behind is None and turn.until is not None
    return turn.until if by_time else now + LOOK_AT_WAITING
