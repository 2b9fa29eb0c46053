"""The note of each offset commit: every record of the partition below `up_to` is completed by the group."""

from collections.abc import Mapping

from sqlalchemy import Connection, insert

from counterfoil.ledger.tables import acknowledged, ledger_time


def note(connection: Connection, session: int, commits: Mapping[tuple[str, int], int]) -> None:
    """One row a partition. `commits` maps (topic, partition) to the committed offset, the first one not completed."""
    if commits:
        rows = [
            {"topic": topic, "partition": partition, "up_to": up_to, "session": session, "at": ledger_time}
            for (topic, partition), up_to in commits.items()
        ]
        connection.execute(insert(acknowledged).values(rows))
