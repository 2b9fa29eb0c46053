"""What `check` looks at in the database: the server, the migrations, the ledger's name, the partitions.

It reads only. A finding has names, counts and what to do; never a setting's value, a URL or an exception's text.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

from counterfoil.cli.absent_database import explained
from counterfoil.cli.exits import Exit
from counterfoil.cli.finding import Finding, Mark
from counterfoil.core.errors import Refused
from counterfoil.settings import Settings

OLDEST_POSTGRESQL = 150000


@contextmanager
def _connected(settings: Settings) -> Iterator[Connection]:
    from counterfoil.ledger.engine import ledger_engine

    engine = ledger_engine(settings.database, pool_size=1)
    try:
        with engine.connect() as connection:
            yield connection
    finally:
        engine.dispose()


def look(settings: Settings) -> Iterator[Finding]:
    """Every finding."""
    try:
        with _connected(settings) as connection:
            yield from _server(connection)
            yield from _ledger(connection, settings)
    except SQLAlchemyError as error:
        trouble = explained(error, settings.database)
        mark = Mark.UNREACHABLE if trouble.exit is Exit.UNREACHABLE else Mark.WRONG
        yield Finding("database", mark, trouble.what, trouble.advice)
    except Refused as error:  # migrated, and not named: an `init` that was interrupted
        yield Finding("ledger", Mark.WRONG, error.reason.sentence, error.reason.advice)


def accepted(settings: Settings) -> Mapping[str, int] | None:
    """The partition counts of topics that the ledger has accepted; None where it was lost since it was looked at."""
    from counterfoil.ledger.partition_counts import accepted_partitions

    try:
        with _connected(settings) as connection:
            return accepted_partitions(connection)
    except SQLAlchemyError:
        return None


def _server(connection: Connection) -> Iterator[Finding]:
    from counterfoil.ledger.server import server

    number, synchronous, fsync = server(connection)
    version = f"PostgreSQL {number // 10000}.{number % 10000}"
    if number < OLDEST_POSTGRESQL:
        yield Finding("database", Mark.WRONG, version, "PostgreSQL 15 or newer is needed.")
    elif synchronous in {"off", "local"} or fsync == "off":
        what = f"{version}, synchronous_commit = {synchronous}, fsync = {fsync}"
        yield Finding("database", Mark.WRONG, what, "Acknowledged commits can be lost: switch both on for this database.")
    else:
        yield Finding("database", Mark.OK, f"{version} answers")


def _ledger(connection: Connection, settings: Settings) -> Iterator[Finding]:
    from counterfoil.ledger.migrate import current, newest
    from counterfoil.ledger.names import ledger_of

    there, known = current(connection), newest()
    if there is None:
        yield Finding("migrations", Mark.WRONG, "this database holds no ledger", "Run `counterfoil init`.")
        return
    if there != known:
        yield Finding("migrations", Mark.WRONG, f"the ledger is at {there}, this program at {known}", "Run `counterfoil init`.")
        return
    yield Finding("migrations", Mark.OK, f"at {there}, the newest")
    name = ledger_of(connection).name
    if name != settings.ledger:
        todo = "Correct the setting `ledger`, or point `database` elsewhere: a ledger's name never changes."
        yield Finding("ledger", Mark.WRONG, f"the database holds ledger {name}", todo)
    else:
        yield Finding("ledger", Mark.OK, f"{name} is the database's")
    yield from _partitions(connection, settings)


def _partitions(connection: Connection, settings: Settings) -> Iterator[Finding]:
    from counterfoil.ledger.partitions import days_ahead

    for parent in ("event", "published"):
        ahead = days_ahead(connection, parent)
        told = f"{parent} has partitions for today and {ahead} days ahead" if ahead >= 0 else f"{parent} has none for today"
        if ahead < 1:
            yield Finding(
                "partitions", Mark.WRONG, told, "Start `counterfoil relay`, which makes them: without one, writes fail."
            )
        elif ahead < settings.partitions_ahead.days - 1:
            yield Finding("partitions", Mark.NOTE, told, "No relay has made new ones lately: see that one runs.")
        else:
            yield Finding("partitions", Mark.OK, told)
