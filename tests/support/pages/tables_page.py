"""Prints the reference page of the ledger's tables: `python -m tests.support.pages.tables_page`.

Tables and columns are the code's own; what a table is for is the comment above it, what a column means the comment beside it.
"""

import inspect
import pkgutil
import re
import sys
from importlib import import_module

from sqlalchemy.dialects import postgresql

from counterfoil import ledger
from counterfoil.ledger import tables

HEAD = f"""\
# The ledger's tables

Made from `counterfoil/ledger/tables*.py` (`make generate`); do not edit by hand. They live in the schema `{tables.SCHEMA}` of
your database. Read them as you like; write to none of them: each transition is one statement with its event, and the CHECK
constraints know only half of the rules. Names and columns may change with a release (`counterfoil init` migrates); programs read
`--json`, `status` and the state topic.

There are no foreign keys between them. Rows of `event` and `published` are in partitions of one day, which the relay makes ahead.
"""
COLUMNS = "| column | type | null | meaning |\n| --- | --- | --- | --- |\n"
ABOVE = re.compile(r"((?:^#: .*\n)+)^(\w+) = Table\(", re.MULTILINE)
COLUMN = re.compile(r'^    Column\("(\w+)"[^#\n]*# (.*)$', re.MULTILINE)
TABLE = re.compile(r"^(\w+) = Table\((.*?)^\)", re.MULTILINE | re.DOTALL)


def _source() -> str:
    """The modules that hold tables, one after the other; importing them fills the metadata."""
    names = sorted(found.name for found in pkgutil.iter_modules(ledger.__path__) if found.name.startswith("tables"))
    return "\n".join(inspect.getsource(import_module(f"{ledger.__name__}.{name}")) for name in names)


def purposes() -> dict[str, str]:
    """What each table is for, by its name."""
    source = _source()
    return {name: " ".join(line[3:] for line in said.splitlines()) for said, name in ABOVE.findall(source)}


def _columns() -> dict[str, dict[str, str]]:
    return {name: dict(COLUMN.findall(f"\n{body}")) for name, body in TABLE.findall(_source())}


def page() -> str:
    """The page."""
    beside, told = _columns(), purposes()
    parts = [HEAD]
    for table in tables.metadata.tables.values():
        parts.append(f"\n## {table.name}\n\n{told[table.name]}\n\n{COLUMNS}")
        for column in table.columns:
            kind = column.type.compile(dialect=postgresql.dialect()).lower()  # type: ignore[no-untyped-call]
            null = "yes" if column.nullable else ""
            parts.append(f"| `{column.name}` | {kind} | {null} | {beside[table.name].get(column.name, '')} |\n")
    return "".join(parts)


if __name__ == "__main__":
    sys.stdout.write(page())
