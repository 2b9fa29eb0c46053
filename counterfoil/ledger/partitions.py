"""Time partitions of `event` and `published`: made days ahead, and old ones of `published` dropped.

It never drops a partition of `event`, and never looks at the outbox: what was not published is never cleaned by age (D04).
"""

import re
from datetime import timedelta

from sqlalchemy import Connection, text

from counterfoil.ledger.tables import SCHEMA

_MAKE = text("SELECT counterfoil.make_partitions(:x_ahead)")
_THERE = text(
    """
SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid WHERE i.inhparent = CAST(:x_parent AS regclass)
ORDER BY c.relname
"""
)
_OLDEST_DAY = text("SELECT to_char((counterfoil.ledger_time() - :x_kept) AT TIME ZONE 'UTC', 'YYYYMMDD')")
_TODAY = text("SELECT to_char(counterfoil.ledger_time() AT TIME ZONE 'UTC', 'YYYYMMDD')")
_NAME = re.compile(r"(event|published)_(\d{8})")


def make_ahead(connection: Connection, ahead: timedelta) -> int:
    """Makes what is missing of the days ahead; answers how many. Safe from several processes at once."""
    return int(connection.execute(_MAKE, {"x_ahead": max(1, ahead.days)}).scalar_one())


def days_ahead(connection: Connection, parent: str = "published") -> int:
    """How many days after today have a partition; -1 where even today has none."""
    today = connection.execute(_TODAY).scalar_one()
    days = [day for day in _days(connection, parent) if day >= today]
    return len(days) - 1


def drop_published(connection: Connection, kept: timedelta) -> list[str]:
    """Drops the days of `published` that ended more than `kept` ago (age counts from publication); answers their names."""
    oldest = connection.execute(_OLDEST_DAY, {"x_kept": kept}).scalar_one()
    gone = [f"published_{day}" for day in _days(connection, "published") if day < oldest]
    for name in gone:
        connection.execute(text(f"DROP TABLE {SCHEMA}.{name}"))  # the name is one that _NAME has matched
    return gone


def _days(connection: Connection, parent: str) -> list[str]:
    names = connection.execute(_THERE, {"x_parent": f"{SCHEMA}.{parent}"}).scalars()
    return [match[2] for name in names if (match := _NAME.fullmatch(name)) and match[1] == parent]
