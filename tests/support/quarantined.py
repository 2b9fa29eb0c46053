"""Dead letters for a test, written as the worker writes them, and of any number by one statement."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from uuid import UUID

from sqlalchemy import Engine, text

from counterfoil import OperationType, enqueue_many
from counterfoil.core import decisions
from counterfoil.ledger.decided import Decided
from counterfoil.ledger.moves import lock
from counterfoil.ledger.names import ledger_of
from counterfoil.reporting import writer_of
from tests.support.ledgers import Bed


def quarantined(
    ledger: Bed, declared: OperationType[Any], payloads: Iterable[Any], reason: str = "undecodable_value"
) -> list[UUID]:
    """Operations that were set aside before any attempt, with their dead letters in the outbox."""
    with ledger.engine.begin() as connection:
        ids = list(enqueue_many(connection, declared, payloads))
    with ledger.engine.begin() as connection:
        rows = connection.execute(
            text("SELECT number FROM counterfoil.operation WHERE operation_id = ANY(:ids)"),
            {"ids": [UUID(str(one)) for one in ids]},
        )
        locked = lock(connection, rows.scalars())
        decided = []
        for number, standing in locked.standings.items():
            move = decisions.set_aside(None, standing, reason)
            assert move is not None
            decided.append(Decided(standing, locked.facts[number], move))
        writer_of(ledger_of(connection)).write(connection, locked.now, decided)
    return [UUID(str(one)) for one in ids]


MANY = (
    """INSERT INTO counterfoil.operation (number, operation_id, type, entity, digest, digest_secret, created_at)
        OVERRIDING SYSTEM VALUE
        SELECT :first + n, md5((:first + n)::text)::uuid, 'bulk', n::text, '\\x00'::bytea, 1, counterfoil.ledger_time()
        FROM generate_series(0, :count - 1) n""",
    """INSERT INTO counterfoil.dead_letter
            (number, type, entity_hash, reason, fingerprint, first_at, at, sequence, revision, open)
        SELECT :first + n, 'bulk_' || (n % 20), hashtextextended(n::text, 0),
            (ARRAY['permanent_failure', 'tries_used_up', 'undecodable_value', 'hold_over', 'message_too_large'])[1 + n % 5],
            'cause ' || (n % 50), counterfoil.ledger_time() - make_interval(secs => n % 864000),
            counterfoil.ledger_time() - make_interval(secs => n % 864000), 1, 1, true
        FROM generate_series(0, :count - 1) n""",
)


def many_dead_letters(engine: Engine, count: int, *, first: int = 1_000_000) -> None:
    """So many dead letters of twenty types, in one hundred causes, without enqueue. Statistics are fresh afterwards."""
    with engine.begin() as connection:
        for statement in MANY:
            connection.execute(text(statement), {"first": first, "count": count})
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text("VACUUM ANALYZE counterfoil.dead_letter"))


__all__ = ["many_dead_letters", "quarantined"]
