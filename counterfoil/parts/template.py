"""A migrated ledger as a template database, and databases copied from it (about 31 ms each)."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from psycopg import sql

from counterfoil.parts.postgres import Postgres

LOCK = 7_215_001  #: advisory lock under which one process of a run builds a template


@dataclass(frozen=True)
class LedgerDatabase:
    """One ledger's own database."""

    url: str
    name: str  #: of the database
    ledger: str  #: of the ledger


def migrated_template(server: Postgres, *, ledger: str = "test") -> str:
    """The name of a template database with a ledger of that name; made on first use, once for all processes."""
    from counterfoil.ledger.migrate import initialise

    name = f"template_{ledger}"
    building = f"{name}_building"
    if ledger in server.templates:
        return name
    with server.connect() as connection:
        connection.execute("SELECT pg_advisory_lock(%s)", (LOCK,))
        if connection.execute("SELECT FROM pg_database WHERE datname = %s", (name,)).fetchone() is not None:
            server.templates.add(ledger)
            return name
        server.drop_database(building)
        initialise(server.create_database(building), ledger=ledger)
        rename = sql.SQL("ALTER DATABASE {} RENAME TO {}").format(sql.Identifier(building), sql.Identifier(name))
        connection.execute(rename)
        connection.execute(sql.SQL("ALTER DATABASE {} ALLOW_CONNECTIONS false").format(sql.Identifier(name)))
    server.templates.add(ledger)
    return name


@contextmanager
def database_from_template(server: Postgres, *, ledger: str = "test", renamed: str | None = None) -> Iterator[LedgerDatabase]:
    """A fresh database with a migrated ledger, dropped at the end.

    `renamed` gives this one ledger another name: names of topics derive from it, so two tests never meet on a topic.
    """
    database = f"ledger_{secrets.token_hex(6)}"
    url = server.create_database(database, template=migrated_template(server, ledger=ledger))
    try:
        if renamed is not None:
            with server.connect(database) as connection:
                connection.execute("UPDATE counterfoil.setting SET value = %s WHERE name = 'ledger'", (renamed,))
        yield LedgerDatabase(url, database, renamed or ledger)
    finally:
        server.drop_database(database)
