"""What `check` looks at: settings and types, the database, what holds work back, held records, the brokers; each on its own.

It reads only. A finding has names, counts and what to do; never a setting's value, a URL or an exception's text.
"""

from collections.abc import Iterator

from counterfoil.cli import broker_checks, database_checks, held_checks, limit_checks, type_checks
from counterfoil.cli.finding import Finding, Mark
from counterfoil.settings import SettingsError, read_settings, unknown_variables


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
    operations, found = type_checks.look(settings)
    yield from found
    database = list(database_checks.look(settings))
    yield from database
    readable = all(one.mark is Mark.OK for one in database if one.name in {"database", "migrations"})
    if readable and operations is not None:
        yield from limit_checks.look(settings, operations)
    if readable:
        yield from held_checks.look(settings)
    yield from broker_checks.look(settings, operations, accepted=database_checks.accepted(settings) if readable else None)


def _variables() -> Iterator[Finding]:
    if unknown := unknown_variables():
        todo = "Correct the names, unless something else of this name set them."
        yield Finding("variables", Mark.NOTE, f"no settings: {', '.join(unknown)}", todo)
