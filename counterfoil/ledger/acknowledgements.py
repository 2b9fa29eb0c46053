"""The note of each offset commit: every record of the partition below `up_to` is completed by the group.

Of each partition the newest note is kept for ever: a record below it is never taken for one that waits.
"""

from collections.abc import Mapping
from datetime import timedelta

from sqlalchemy import Connection, insert

from counterfoil.ledger.statements.relaying import DROP_ACKNOWLEDGED
from counterfoil.ledger.tables import ledger_time
from counterfoil.ledger.tables_records import acknowledged


def note(connection: Connection, session: int, commits: Mapping[tuple[str, int], int]) -> None:
    """One row a partition. `commits` maps (topic, partition) to the committed offset, the first one not completed."""
    if commits:
        rows = [
            {"topic": topic, "partition": partition, "up_to": up_to, "session": session, "at": ledger_time}
            for (topic, partition), up_to in commits.items()
        ]
        connection.execute(insert(acknowledged).values(rows))


def drop_acknowledged(connection: Connection, kept: timedelta, *, limit: int) -> int:
    """Deletes at most `limit` notes older than `kept` that a newer one of their partition covers; answers how many."""
    return connection.execute(DROP_ACKNOWLEDGED, {"k_kept": kept, "k_limit": limit}).rowcount
