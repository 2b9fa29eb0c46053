"""The dead letters of quarantined operations: outbox rows with the command's own bytes, for the transaction of the quarantine.

It writes nothing and decides nothing; the words of the headers are the schema's, so they are handed in.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple
from uuid import UUID, uuid5

import orjson
from sqlalchemy import Connection, select

from counterfoil.core.roads import DEAD_LETTER
from counterfoil.core.shards import shard
from counterfoil.ledger.decided import Decided, Facts
from counterfoil.ledger.names import Ledger
from counterfoil.ledger.tables import operation, payload, state


class Letter(NamedTuple):
    """A quarantined operation's dead letter: why, and the record that it was last admitted from (None: it never was)."""

    cause: UUID
    reason: str
    facts: Facts
    attempt: int
    road: str | None
    partition: int | None
    offset: int | None


#: The words of a dead letter's headers.
DeadLetterWords = Callable[[Ledger, Letter], Sequence[tuple[str, str]]]


def dead_letters(
    connection: Connection, ledger: Ledger, words: DeadLetterWords, quarantined: Sequence[Decided]
) -> list[tuple[Any, ...]]:
    """A dead letter each: the command's own bytes under our headers; rare, so their bytes are read here."""
    if not quarantined:
        return []
    wanted = [one.standing.number for one in quarantined]
    rows = connection.execute(
        select(state.c.number, state.c.record_road, state.c.record_partition, state.c.record_offset, payload.c.value)
        .join(operation, operation.c.number == state.c.number)
        .join(payload, (payload.c.number == state.c.number) & (payload.c.revision == state.c.revision))
        .where(state.c.number.in_(wanted))
    )
    there = {row.number: row for row in rows}
    letters = []
    for one in quarantined:
        row = there[one.standing.number]
        letter = _letter(one, row)
        letters.append(_outbox_row(one, row.value, orjson.dumps(words(ledger, letter)).decode()))
    return letters


def _letter(one: Decided, row: Any) -> Letter:
    return Letter(
        cause_of(one.facts.operation_id, one.standing.sequence + 1),
        one.move.reason,
        one.facts,
        one.standing.attempt,
        row.record_road,
        row.record_partition,
        row.record_offset,
    )


def _outbox_row(one: Decided, value: bytes, headers: str) -> tuple[Any, ...]:
    """In the order of the columns OUT."""
    standing, facts = one.standing, one.facts
    key = str(facts.operation_id).encode()
    return (
        standing.number,
        shard(key),
        DEAD_LETTER,
        facts.type,
        facts.operation_id,
        standing.revision,
        key,
        value,
        headers,
        facts.traceparent,
    )


def cause_of(operation_id: UUID, sequence: int) -> UUID:
    """The id of the cause that one quarantine of an operation is: the same however often it is computed."""
    return uuid5(operation_id, f"quarantined:{sequence}")
