"""The sweepers: every unfinished operation is found by its due time, whatever became of its record or its worker.

One pass of each is one transaction on at most `limit` operations; passes are repeated until nothing is due. Any number of
processes may sweep: rows that another one holds are passed over.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from random import random
from typing import Any

from sqlalchemy import Connection

from counterfoil.core import decisions
from counterfoil.core.chain import event_content
from counterfoil.core.decisions import Move
from counterfoil.core.events import EventKind
from counterfoil.core.roads import COMMAND, RETRY, around_type
from counterfoil.core.shards import shard
from counterfoil.core.standing import Rules
from counterfoil.core.states import State
from counterfoil.ledger.arrays import Array, columns
from counterfoil.ledger.decided import Decided
from counterfoil.ledger.moves import Writer, Written, lock
from counterfoil.ledger.statements.sweeping import LEASES, LOOK_LATER, SEND, SEND_AGAIN, SEND_DUE, UNPROBED, UNPUBLISHED

#: A record that nobody passed for so long is sent once more, whatever its topic says: the topic may have been made again. A copy
#: is harmless.
SURELY_LOST = timedelta(days=1)
#: State, and the outbox kind of what is sent for it.
_ROADS = ((State.QUEUED, COMMAND), (State.RETRY_WAIT, RETRY))


def send_due(connection: Connection, writer: Writer, *, limit: int, resend_after: timedelta) -> list[Written]:
    """Sends the command records of queued and waiting operations that are due; answers them.

    Once sent, an operation is sent again when the group has committed past its newest record and it still waits, when that record
    is nowhere any more, or when it was passed by nobody for SURELY_LOST. While its record is held it waits for the hold's
    deadline (see `held`). One that was told to wait for another of its entity is looked at once a day, and sent only
    when that one is gone.
    """
    return [one for road in _ROADS for one in _send_due(connection, writer, road, (limit, resend_after))]


def _send_due(connection: Connection, writer: Writer, road: tuple[State, str], pace: tuple[int, timedelta]) -> list[Written]:
    waiting, kind = road
    limit, resend_after = pace
    before, after = around_type(writer.ledger.name, kind)
    asked = {"d_state": waiting.value, "d_before": before, "d_after": after, "d_limit": limit}
    rows = connection.execute(SEND_DUE, asked).all()
    free = [row for row in rows if row.held_until is None and not row.waits]
    send = _to_send(connection, free)
    done = {row.number for row in send}
    _look_later(connection, [(row.number, _later(row, resend_after)) for row in rows if row.number not in done])
    if send:
        content = event_content(writer.ledger.secret, "sent_again", "sent_again", b"")
        parameters = [
            (row.number, shard(key), row.operation_id, row.type, row.revision, row.generation, key, row.traceparent, content)
            for row in send
            for key in (row.entity.encode(),)
        ]
        common = {
            "s_now": send[0].now,
            "s_wait": resend_after,
            "s_secret": writer.ledger.secret_id,
            "s_kind": kind,
            "s_reason": "sent_again",
        }
        connection.execute(SEND_AGAIN, {**columns(SEND, parameters), **common})
    told = EventKind.SENT_AGAIN
    return [Written(row.operation_id, row.type, row.attempt, told, None, told.value) for row in send]


def _to_send(connection: Connection, rows: Sequence[Any]) -> list[Any]:
    """Those whose newest record will not bring them to a worker: there is none, it was passed, or it is nowhere any more."""
    unnoted = [(row.number, shard(row.entity.encode()), row.sent_id) for row in rows if row.sent_id is not None and not row.noted]
    unpublished = set(connection.execute(UNPUBLISHED, columns(["u_number", "u_shard", "u_id"], unnoted)).scalars())
    return [
        row
        for row in rows
        if row.sent_id is None
        or (row.noted and (row.passed or row.now - row.sent_at > SURELY_LOST))
        or (not row.noted and row.number not in unpublished)
    ]


def _later(row: Any, resend_after: timedelta) -> datetime:
    """When to look again: the longer a record waits in Kafka, the less often, so that a backlog costs little."""
    now: datetime = row.now
    if row.held_until is not None:
        held_until: datetime = row.held_until
        return max(held_until, now + resend_after)
    if row.waits:
        return now + SURELY_LOST  # whoever frees its entity sends its record
    waited: timedelta = now - row.sent_at
    return now + min(max(resend_after, waited / 2), SURELY_LOST)


def _look_later(connection: Connection, later: Sequence[tuple[int, datetime]]) -> None:
    if later:
        connection.execute(LOOK_LATER, columns(["p_number", "p_due"], later))


def end_leases(connection: Connection, writer: Writer, rules_by_type: Mapping[str, Rules], *, limit: int) -> list[Written]:
    """Moves on running operations whose session is dead or whose run time is over; answers them."""
    asked = {"d_types": Array(rules_by_type), "d_limit": limit}
    rows = connection.execute(LEASES, asked).all()
    over = {row.number: bool(row.lease_over) for row in rows if row.lease_over or row.time_over}
    _look_later(connection, [(row.number, min(row.lease_until, row.attempt_until)) for row in rows if row.number not in over])
    locked = lock(connection, over)
    decided = []
    for number, standing in locked.standings.items():
        rules = rules_by_type[locked.facts[number].type]
        move = decisions.lease_over(rules, standing, lease_over=over[number], now=locked.now, jitter=random())
        if isinstance(move, Move):
            decided.append(Decided(standing, locked.facts[number], move))
    return writer.write(connection, locked.now, decided)


def resend_unprobed(
    connection: Connection, writer: Writer, rules_by_type: Mapping[str, Rules], *, limit: int, look_again: timedelta
) -> list[Written]:
    """Sends again, under the same key, what nobody can probe and the sink's key makes harmless; answers it.

    What may not be sent again is for the reconciler, and is looked at again after `look_again`.
    """
    names = [name for name, rules in rules_by_type.items() if rules.resendable]
    rows = connection.execute(UNPROBED, {"d_types": Array(names), "d_limit": limit}).all()
    locked = lock(connection, [row.number for row in rows])
    decided, later = [], []
    for number, standing in locked.standings.items():
        rules = rules_by_type[locked.facts[number].type]
        move = decisions.send_again(rules, standing, now=locked.now)
        if move is None:
            later.append((number, locked.now + look_again))
        else:
            decided.append(Decided(standing, locked.facts[number], move))
    _look_later(connection, later)
    return writer.write(connection, locked.now, decided)
