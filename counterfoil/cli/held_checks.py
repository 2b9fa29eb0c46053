"""What `check` looks at in held records: how many wait for a worker, and how many have no operation and wait for a person.

It reads only. None of it is wrong: somebody should know.
"""

from collections.abc import Iterator

from sqlalchemy.exc import SQLAlchemyError

from counterfoil.cli.answer import ago
from counterfoil.cli.finding import Finding, Mark
from counterfoil.cli.options import ledger_connection
from counterfoil.core.dead_letters import Chosen
from counterfoil.settings import Settings


def look(settings: Settings) -> Iterator[Finding]:
    """Every finding."""
    from counterfoil.ledger.held import groups
    from counterfoil.ledger.reading import ledger_now

    try:
        with ledger_connection(settings) as connection:
            found, now = groups(connection, Chosen()), ledger_now(connection)
    except SQLAlchemyError:
        return  # lost since it was looked at
    for one in found:
        oldest = f"the oldest for {ago(now - one.first_at)}"
        waiting = one.count - one.without_operation
        if waiting:
            what = f"{waiting:,} of {one.type} wait for a worker ({one.reason}), {oldest}"
            todo = "Start a worker with the newer contract; `counterfoil held list --groups` says more."
            yield Finding("held records", Mark.NOTE, what, todo)
        if one.without_operation:
            what = f"{one.without_operation:,} of {one.type} have no operation in this ledger ({one.reason}), {oldest}"
            yield Finding("held records", Mark.NOTE, what, "They wait for a person: `counterfoil held list --groups`.")
