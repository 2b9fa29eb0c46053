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
from counterfoil.core.shards import shard
from counterfoil.core.standing import Rules
from counterfoil.ledger.arrays import Array, columns
from counterfoil.ledger.moves import Decided, Writer, lock
from counterfoil.ledger.statements.sweeping import LEASES, LOOK_LATER, SEND, SEND_AGAIN, SEND_DUE, UNPROBED

#: State, the topic's road, and the outbox kind of what is sent for it.
_ROADS = (("queued", ".commands", "command"), ("retry_wait", ".retry", "retry"))


def send_due(connection: Connection, writer: Writer, *, limit: int, resend_after: timedelta) -> int:
    """Sends the command records of queued and waiting operations that are due; answers how many.

    Once sent, an operation is sent again only when the group has committed past its newest record and it still waits; while its
    record is held it waits for the hold's deadline.
    """
    return sum(_send_due(connection, writer, road, limit, resend_after) for road in _ROADS)


def _send_due(connection: Connection, writer: Writer, road: tuple[str, str, str], limit: int, resend_after: timedelta) -> int:
    waiting, topic, kind = road
    asked = {"d_state": waiting, "d_road": topic, "d_ledger": writer.ledger.name, "d_limit": limit}
    rows = connection.execute(SEND_DUE, asked).all()
    send = [row for row in rows if row.send and row.held_until is None]
    later = [(row.number, _later(row, resend_after)) for row in rows if not row.send or row.held_until is not None]
    if send:
        content = event_content(writer.ledger.secret, "sent_again", "sent_again", b"")
        parameters = [
            (row.number, shard(key), row.operation_id, row.type, row.revision, row.generation, key, row.traceparent, content)
            for row in send
            for key in (row.entity.encode(),)
        ]
        common = {"s_now": send[0].now, "s_wait": resend_after, "s_secret": writer.ledger.secret_id, "s_kind": kind}
        connection.execute(SEND_AGAIN, {**columns(SEND, parameters), **common})
    _look_later(connection, later)
    return len(send)


def _later(row: Any, resend_after: timedelta) -> datetime:
    """When to look again: the longer a record waits in Kafka, the less often, so that a backlog costs little."""
    now: datetime = row.now
    if row.held_until is not None:
        held_until: datetime = row.held_until
        return max(held_until, now + resend_after)
    waited: timedelta = now - row.sent_at
    return now + max(resend_after, waited / 2)


def _look_later(connection: Connection, later: Sequence[tuple[int, datetime]]) -> None:
    if later:
        connection.execute(LOOK_LATER, columns(["p_number", "p_due"], later))


def end_leases(connection: Connection, writer: Writer, rules_by_type: Mapping[str, Rules], *, limit: int) -> int:
    """Moves on running operations whose session is dead or whose run time is over; answers how many."""
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
    return len(writer.write(connection, locked.now, decided))


def resend_unprobed(
    connection: Connection, writer: Writer, rules_by_type: Mapping[str, Rules], *, limit: int, look_again: timedelta
) -> int:
    """Sends again, under the same key, what nobody can probe and the sink's key makes harmless; answers how many.

    What may not be sent again is for the reconciler, and is looked at again after `look_again`.
    """
    names = [name for name, rules in rules_by_type.items() if rules.keyed and not rules.has_probe and not rules.money]
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
    return len(writer.write(connection, locked.now, decided))
