"""How many partitions each topic had when that was last accepted: a changed count moves keys, and somebody must know (D20)."""

from collections.abc import Mapping

from sqlalchemy import Connection, func, select
from sqlalchemy.dialects.postgresql import insert

from counterfoil.ledger.tables import setting

PREFIX = "partitions:"


def accepted_partitions(connection: Connection) -> dict[str, int]:
    """The accepted count of each topic that has one."""
    rows = connection.execute(select(setting.c.name, setting.c.value).where(setting.c.name.startswith(PREFIX, autoescape=True)))
    return {name.removeprefix(PREFIX): int(value) for name, value in rows}


def accept_partitions(connection: Connection, counts: Mapping[str, int], *, again: bool) -> None:
    """Writes counts down; without `again` a topic that has one keeps it."""
    if not counts:
        return
    rows = [{"name": PREFIX + topic, "value": str(count)} for topic, count in sorted(counts.items())]
    statement = insert(setting).values(rows)
    if again:
        changed = {"value": statement.excluded.value, "changed_at": func.now()}
        statement = statement.on_conflict_do_update(index_elements=["name"], set_=changed)
    else:
        statement = statement.on_conflict_do_nothing()
    connection.execute(statement)
