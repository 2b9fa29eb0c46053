"""The table of `counterfoil operations list`: one line an operation where there is room, two where there is not.

An operation's id is never folded or cut: it is there to be copied. It must never print a payload, an entity or a record's key.
"""

import os
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from counterfoil.cli.answer import ago, moment
from counterfoil.cli.shown import cell

if TYPE_CHECKING:
    from counterfoil.ledger.reading import Line

ID = 36  #: characters of a UUID
ROOM = 140  #: columns from which one line is enough
NOBODY = 200  #: columns where no terminal looks on: each operation in one line, for grep


def print_list(console: Console, lines: "Sequence[Line]", now: datetime, *, utc: bool) -> None:
    """Print them in the order given."""
    looked_at = console.is_terminal or "COLUMNS" in os.environ
    console.width = console.width if looked_at else NOBODY
    console.print(_one_line(lines, now, utc=utc) if console.width >= ROOM else _two_lines(lines, now))


def _tries(line: "Line") -> str:
    return f"{line.attempt} of {line.attempt + line.tries_left}"


def _table(*names: str) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    table.add_column("operation_id", no_wrap=True, min_width=ID)
    for name in names:
        table.add_column(name, overflow="fold")
    return table


def _one_line(lines: "Sequence[Line]", now: datetime, *, utc: bool) -> Table:
    table = _table("type", "state", "attempt", "due", "reason", "accepted")
    for line in lines:
        due = ago(now - line.due_at) if line.due_at else ""
        accepted = moment(line.created_at, utc=utc)
        table.add_row(*map(cell, (str(line.operation_id), line.type, line.state, _tries(line), due, line.reason, accepted)))
    return table


def _two_lines(lines: "Sequence[Line]", now: datetime) -> Table:
    """Below the id what is short, below the state its reason; times by their distance from now."""
    table = _table("type", "state")
    for line in lines:
        due = "" if line.due_at is None else f", due {'for ' if line.due_at < now else ''}{ago(now - line.due_at)}"
        table.add_row(*map(cell, (str(line.operation_id), line.type, line.state)))
        table.add_row(*map(cell, (f"  {_tries(line)}{due}, {ago(now - line.created_at)} old", "", line.reason)))
    return table
