"""Held records without an operation, looked at again: has the ledger the operation that their headers claim?

A record is never run from here. Where its operation has turned up with the same bytes it is that operation's; where it has other
bytes the record is quarantined, as a worker does with it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple
from uuid import UUID

from sqlalchemy import Connection

from counterfoil.core.errors import Undecodable
from counterfoil.core.reasons import Reason
from counterfoil.ledger import held, quarantine, releasing
from counterfoil.ledger.raw_records import Raw
from counterfoil.ledger.releasing import LetGo
from counterfoil.reporting import raw_words
from counterfoil.schemas.envelope import parse_command

AT_ONCE = 100  #: records of one look; their headers are read, and the values of those alone whose operation is there


class TakenUp(NamedTuple):
    """What became of records whose operation turned up."""

    let_go: list[LetGo]
    adopted: list[UUID]  #: their operation's now, and still held: no worker could read them
    given_up: list[quarantine.Kept]  #: quarantined: their operation has other bytes


def take_up(
    connection: Connection, headers: Mapping[UUID, Sequence[tuple[str, bytes | None]]], review_within: timedelta
) -> TakenUp:
    """By cause the headers of held records without an operation; those whose operation is not there stay as they are."""
    claims = {cause: claimed for cause, told in headers.items() if (claimed := _claimed(told)) is not None}
    found = releasing.adopt(connection, claims)
    own = [one for one in found if one.own]
    gone = [LetGo(*one[:3], True) for one in own if one.reason == Reason.UNKNOWN_OPERATION_RECORD.value]
    forged = [one.cause for one in found if not one.own]
    kept = list(quarantine.raw_records(connection, forged, values=False).values()) if forged else []
    releasing.give_up(connection, [(one.id, one.key, raw_words(_raw(one), one.id)) for one in kept], review_within)
    let_go = {one.cause for one in gone}
    return TakenUp(gone, [one.cause for one in own if one.cause not in let_go], kept)


def _claimed(headers: Sequence[tuple[str, bytes | None]]) -> UUID | None:
    try:
        return parse_command(headers).operation_id
    except Undecodable:
        return None


def _raw(kept: quarantine.Kept) -> Raw:
    """For the words of its dead letter, which hold no byte of key or value."""
    milliseconds = None if kept.time is None else int(kept.time.timestamp() * 1000)
    place = (kept.topic, kept.partition, kept.offset, milliseconds)
    return Raw(*place, None, None, kept.headers, kept.type, None, Reason.DIGEST_MISMATCH)


class Rounds:
    """Goes through them from the oldest to the newest, a few at each look, and begins again."""

    def __init__(self, review_within: timedelta) -> None:
        self._review_within = review_within
        self._after: tuple[datetime, UUID] | None = None

    def look(self, connection: Connection) -> TakenUp:
        """The next few."""
        rows = held.unnamed(connection, after=self._after, limit=AT_ONCE)
        self._after = (rows[-1].at, rows[-1].cause) if len(rows) == AT_ONCE else None
        return take_up(connection, {one.cause: one.headers for one in rows if one.headers is not None}, self._review_within)
