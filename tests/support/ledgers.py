"""A ledger of a test's own: its database, its name, its clock; and ledgers of any size, written without enqueue."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from sqlalchemy import Engine, text

from counterfoil.parts import Postgres
from counterfoil.parts.template import LedgerDatabase


@dataclass(frozen=True)
class Bed:
    """One ledger in a database of its own."""

    server: Postgres
    database: LedgerDatabase
    engine: Engine
    url: str  #: with a planted password, which the server ignores and nobody may print

    @property
    def name(self) -> str:
        """The ledger's name, from which its topics' names derive; no other test's ledger has it."""
        return self.database.ledger

    def shift(self, by: timedelta) -> None:
        """Move this ledger's clock to the server's plus `by`; no other ledger notices. Time partitions follow."""
        seconds = by.total_seconds()
        body = f"SELECT clock_timestamp() + make_interval(secs => {seconds})"
        with self.engine.begin() as connection:
            connection.execute(
                text(
                    f"CREATE OR REPLACE FUNCTION counterfoil.ledger_time() RETURNS timestamptz LANGUAGE sql VOLATILE AS '{body}'"
                )
            )
            connection.execute(text("SELECT counterfoil.make_partitions(7)"))

    def rows(self, query: str, **values: object) -> list[dict[str, Any]]:
        """The rows of a query, for a test's assertions."""
        with self.engine.connect() as connection:
            return [dict(row) for row in connection.execute(text(query), values).mappings()]

    def one(self, query: str, **values: object) -> Any:
        """The one value of a query."""
        with self.engine.connect() as connection:
            return connection.execute(text(query), values).scalar_one()


BULK = (
    """
    INSERT INTO counterfoil.operation (number, operation_id, type, entity, digest, digest_secret, created_at)
    OVERRIDING SYSTEM VALUE
    SELECT :first + n, md5((:first + n)::text)::uuid, :type, (:first + n)::text, '\\x00'::bytea, 1,
           counterfoil.ledger_time() - make_interval(secs => n % 86400)
    FROM generate_series(0, :count - 1) n
    """,
    """
    INSERT INTO counterfoil.payload (number, revision, value, value_hash, created_at)
    SELECT :first + n, 1, '\\x0000000001'::bytea, sha256('\\x0000000001'::bytea), counterfoil.ledger_time()
    FROM generate_series(0, :count - 1) n
    """,
    """
    INSERT INTO counterfoil.state
        (number, state, sequence, events, tries_left, outcome, due_at, closed_at, reason, chain, updated_at)
    SELECT :first + n,
           CASE WHEN n % :one_in = 0 THEN 'queued' ELSE 'confirmed' END, CASE WHEN n % :one_in = 0 THEN 0 ELSE 2 END, 1, 10,
           CASE WHEN n % :one_in = 0 THEN NULL ELSE 'done' END,
           CASE WHEN n % :one_in = 0 THEN counterfoil.ledger_time() + make_interval(secs => n % 7200 - 3600) END,
           CASE WHEN n % :one_in = 0 THEN NULL ELSE counterfoil.ledger_time() END,
           'accepted', '\\x00'::bytea, counterfoil.ledger_time()
    FROM generate_series(0, :count - 1) n
    """,
    """
    INSERT INTO counterfoil.event (number, ordinal, sequence, at, kind, state, attempt, reason, secret, content, chain)
    SELECT :first + n, 1, 0, counterfoil.ledger_time(), 'accepted', 'queued', 0, 'accepted', 1, '\\x00'::bytea, '\\x00'::bytea
    FROM generate_series(0, :count - 1) n
    """,
)


def bulk_ledger(
    engine: Engine,
    count: int,
    *,
    open_share: float = 0.01,
    type_name: str = "bulk",
    first: int = 1_000_000,
    statistics: bool = True,
) -> None:
    """Write `count` operations, of which a share is queued (due from an hour ago to an hour ahead) and the rest is confirmed.

    Numbers run from `first`; the identity of `operation` continues after them. Statistics are fresh afterwards, or
    with `statistics=False` as stale as they were.
    """
    values = {"count": count, "first": first, "type": type_name, "one_in": max(1, round(1 / open_share))}
    with engine.begin() as connection:
        for statement in BULK:
            connection.execute(text(statement), {name: value for name, value in values.items() if f":{name}" in statement})
        restart = "ALTER TABLE counterfoil.operation ALTER COLUMN number RESTART WITH"
        connection.execute(text(f"{restart} {first + count}"))
        if statistics:
            connection.execute(text("ANALYZE counterfoil.operation, counterfoil.state"))
