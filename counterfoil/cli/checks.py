"""What `check` looks at, in the order in which things depend on each other; what depends on something wrong is skipped.

It reads only. A finding has names, counts and what to do; never a setting's value, a URL or an exception's text.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

from counterfoil.cli.exits import Exit
from counterfoil.cli.finding import Finding, Mark
from counterfoil.cli.topics import EMBEDDED
from counterfoil.cli.trouble import sorted_out
from counterfoil.core.errors import CounterfoilError
from counterfoil.core.operation_type import Operations
from counterfoil.settings import Settings, SettingsError, load_operations, read_settings, unknown_variables

OLDEST_POSTGRESQL = 150000


def look() -> Iterator[Finding]:
    """Every finding, one after the other."""
    try:
        settings = read_settings()
    except SettingsError as error:
        for name, expected in error.wrong:
            yield Finding(f"setting {name}", Mark.WRONG, expected, "Correct it in the environment or in counterfoil.toml.")
        return
    yield Finding("settings", Mark.OK, f"of ledger {settings.ledger}")
    yield from _variables()
    operations, found = _types(settings)
    yield from found
    database = list(_database(settings))
    yield from database
    if operations is None:
        yield Finding("topics", Mark.SKIPPED, "the operation types could not be loaded")
    elif any(one.mark is not Mark.OK and one.name in {"database", "migrations"} for one in database):
        yield Finding("topics", Mark.SKIPPED, "the ledger, which knows their accepted partition counts, could not be read")
    else:
        yield from _topics(settings, operations)


def _variables() -> Iterator[Finding]:
    if unknown := unknown_variables():
        todo = "Correct the names, unless something else of this name set them."
        yield Finding("variables", Mark.NOTE, f"no settings: {', '.join(unknown)}", todo)


def _types(settings: Settings) -> tuple[Operations | None, list[Finding]]:
    from counterfoil.schemas.contracts import Contracts

    try:
        operations = load_operations(settings.operations)
    except SettingsError as error:
        told = "; ".join(expected for _, expected in error.wrong)
        return None, [Finding("types", Mark.WRONG, told, "Correct the module that the setting `operations` names.")]
    found = [Finding("types", Mark.OK, f"{len(operations.types)} declared: {', '.join(one.name for one in operations.types)}")]
    contracts = Contracts(operations, settings.registry_lock)
    for one in operations.types:
        try:
            contract = contracts.of(one.name)
        except CounterfoilError as error:
            found.append(
                Finding(f"contract of {one.name}", Mark.WRONG, str(error), "Correct the contract, or run `counterfoil init`.")
            )
        else:
            told = f"{contract.subject}, version {contract.version}, id {contract.schema_id}"
            found.append(Finding(f"contract of {one.name}", Mark.OK, told))
    return operations, [*found, *_limits(operations)]


def _limits(operations: Operations) -> Iterator[Finding]:
    """What is declared and not kept yet."""
    for name in sorted({one.sink.name for one in operations.types if one.sink and one.sink.limits.per_second is not None}):
        todo = "Until it is, let `limits.concurrency` bound the calls, or the sink refuse what is too much (`Temporary`)."
        yield Finding(f"limits of {name}", Mark.NOTE, "`per_second` is declared, and not enforced in this release", todo)


@contextmanager
def _connected(settings: Settings) -> Iterator[Connection]:
    from counterfoil.ledger.engine import ledger_engine

    engine = ledger_engine(settings.database, pool_size=1)
    try:
        with engine.connect() as connection:
            yield connection
    finally:
        engine.dispose()


def _database(settings: Settings) -> Iterator[Finding]:
    try:
        with _connected(settings) as connection:
            yield from _server(connection)
            yield from _ledger(connection, settings)
    except SQLAlchemyError as error:
        trouble = sorted_out(error)
        mark = Mark.UNREACHABLE if trouble.exit is Exit.UNREACHABLE else Mark.WRONG
        yield Finding("database", mark, trouble.what, trouble.advice)


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


def _topics(settings: Settings, operations: Operations) -> Iterator[Finding]:
    if settings.embedded:
        yield Finding("topics", Mark.NOTE, EMBEDDED, "For anything but the demo: name real brokers, and unset `embedded`.")
        return
    from counterfoil.streams.topics import plan as topics

    try:
        flaws = topics.verify(settings, operations)
    except Exception as error:  # noqa: BLE001 - brokers and their client raise many kinds; told by class, like every error
        trouble = sorted_out(error)
        mark = Mark.UNREACHABLE if trouble.exit is Exit.UNREACHABLE else Mark.WRONG
        yield Finding("topics", mark, trouble.what, trouble.advice)
        return
    for flaw in flaws:
        yield Finding(f"topic {flaw.topic}", Mark.NOTE if flaw.code == "unseen" else Mark.WRONG, flaw.what, flaw.todo)
    if not flaws:
        yield Finding("topics", Mark.OK, "every topic of the declared types is as it should be")
