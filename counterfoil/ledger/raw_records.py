"""Records kept raw: value, key, every header and the coordinates, untouched, with a reason; saved before their offset moves.

A quarantined one (it can never be read) gets its dead letter in the same transaction; a held one waits for its deadline, for a
worker that can do it, or for a person. Keeping the same record twice keeps it once.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from struct import pack, unpack_from
from typing import NamedTuple
from uuid import UUID, uuid5

import orjson
from sqlalchemy import Connection

from counterfoil.core.reasons import Reason
from counterfoil.core.shards import shard
from counterfoil.ledger.arrays import columns
from counterfoil.ledger.names import Ledger
from counterfoil.ledger.statements.keeping import KEEP, KEPT

#: Names the causes of records that have no operation.
CAUSES = UUID("6c0c5f0a-3d54-8c55-9d3e-0d8ac3f0c6a1")
#: Of one statement's values: records may be as large as a topic takes.
MOST_BYTES = 16 * 1024 * 1024


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
    asked = {"k_status": "held" if held else "quarantined", "k_due": due_in}
    new = 0
    for rows in _portions({cause_of(ledger, raw): raw for raw in raws}):
        kept = [_row(cause, raw, None if held else words(raw, cause)) for cause, raw in rows]
        new += connection.execute(KEEP, {**columns(KEPT, kept), **asked}).scalar_one()
    return new


def _portions(raws: Mapping[UUID, Raw]) -> Iterator[list[tuple[UUID, Raw]]]:
    """Parts of at most MOST_BYTES, or of one record: nearly always a single one."""
    portion: list[tuple[UUID, Raw]] = []
    size = 0
    for cause, raw in raws.items():
        if portion and size + len(raw.value or b"") > MOST_BYTES:
            yield portion
            portion, size = [], 0
        portion.append((cause, raw))
        size += len(raw.value or b"")
    if portion:
        yield portion


def _row(cause: UUID, raw: Raw, words: Sequence[tuple[str, str]] | None) -> tuple[object, ...]:
    return (
        cause,
        str(raw.reason),
        raw.type,
        raw.number,
        raw.topic,
        raw.partition,
        raw.offset,
        _instant(raw.timestamp_ms),
        raw.key,
        raw.value,
        packed(raw.headers),
        shard(raw.key or cause.bytes),
        None if words is None else orjson.dumps(words).decode(),
    )


def cause_of(ledger: Ledger, raw: Raw) -> UUID:
    """The id of a record's cause: from its coordinates and time, so that the same record has one cause however often it comes."""
    return uuid5(CAUSES, f"{ledger.name}/{raw.topic}/{raw.partition}/{raw.offset}/{raw.timestamp_ms}")


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
