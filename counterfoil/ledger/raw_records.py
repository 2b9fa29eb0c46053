"""Records kept raw: value, key, every header and the coordinates, untouched, with a reason; saved before their offset moves.

A quarantined one (it can never be read) gets its dead letter in the same transaction; a held one waits for its deadline, for a
worker that can do it, or for a person. Keeping the same record twice keeps it once.
"""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from struct import pack, unpack_from
from typing import NamedTuple
from uuid import UUID, uuid5

import orjson
from sqlalchemy import Connection
from sqlalchemy.dialects.postgresql import insert

from counterfoil.core.reasons import Reason
from counterfoil.core.roads import DEAD_LETTER
from counterfoil.core.shards import shard
from counterfoil.ledger.names import Ledger
from counterfoil.ledger.tables import ledger_time, outbox, raw_record

#: Names the causes of records that have no operation.
CAUSES = UUID("6c0c5f0a-3d54-8c55-9d3e-0d8ac3f0c6a1")


class Raw(NamedTuple):
    """A Kafka record as it came. `timestamp_ms` None: it had none."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int | None
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes | None]]
    type: str
    number: int | None
    reason: Reason


def keep(
    connection: Connection,
    ledger: Ledger,
    raws: Sequence[Raw],
    *,
    held: bool,
    due_in: timedelta,
    words: Callable[[Raw, UUID], Sequence[tuple[str, str]]],
) -> int:
    """Keeps them; answers how many were new. `due_in`: the hold's deadline, or the review promised for a quarantined one."""
    new = 0
    for raw in raws:
        cause = cause_of(ledger, raw)
        statement = (
            insert(raw_record)
            .values(
                id=cause,
                status="held" if held else "quarantined",
                reason=str(raw.reason),
                type=raw.type,
                number=raw.number,
                topic=raw.topic,
                partition=raw.partition,
                record_offset=raw.offset,
                record_time=_instant(raw.timestamp_ms),
                key=raw.key,
                value=raw.value,
                headers=packed(raw.headers),
                due_at=ledger_time + due_in,
                at=ledger_time,
            )
            .on_conflict_do_nothing()
            .returning(raw_record.c.id)  # rowcount says -1 here, whether or not there was a conflict
        )
        if connection.execute(statement).one_or_none() is not None:
            new += 1
            if not held:
                _dead_letter(connection, raw, cause, words(raw, cause))
    return new


def cause_of(ledger: Ledger, raw: Raw) -> UUID:
    """The id of a record's cause: from its coordinates and time, so that the same record has one cause however often it comes."""
    return uuid5(CAUSES, f"{ledger.name}/{raw.topic}/{raw.partition}/{raw.offset}/{raw.timestamp_ms}")


def _dead_letter(connection: Connection, raw: Raw, cause: UUID, words: Sequence[tuple[str, str]]) -> None:
    connection.execute(
        insert(outbox).values(
            shard=shard(raw.key or cause.bytes),
            kind=DEAD_LETTER,
            type=raw.type,
            number=None,
            operation_id=None,
            key=raw.key,
            value=raw.value,
            headers=orjson.loads(orjson.dumps(words)),
            created_at=ledger_time,
        )
    )


def _instant(milliseconds: int | None) -> datetime | None:
    if milliseconds is None or not 0 <= milliseconds < 253_402_300_800_000:  # the year 10000
        return None
    return datetime.fromtimestamp(milliseconds / 1000, UTC)


def packed(headers: Sequence[tuple[str, bytes | None]]) -> bytes:
    """All headers in one value, byte for byte: for each, length and name, then length and value; length -1 is a null value."""
    parts = []
    for name, value in headers:
        text = name.encode("utf-8", "surrogateescape")
        parts.append(pack(">i", len(text)) + text + (pack(">i", -1) if value is None else pack(">i", len(value)) + value))
    return b"".join(parts)


def unpacked(value: bytes) -> list[tuple[str, bytes | None]]:
    """What `packed` was given."""
    headers: list[tuple[str, bytes | None]] = []
    at = 0

    def take() -> bytes | None:
        nonlocal at
        (length,) = unpack_from(">i", value, at)
        at += 4
        if length < 0:
            return None
        at += length
        return value[at - length : at]

    while at < len(value):
        name = (take() or b"").decode("utf-8", "surrogateescape")
        headers.append((name, take()))
    return headers
