"""How sinks stand, read for people: breaker, calls in flight, limits, who shares them, what was down and when."""

from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import Connection

from counterfoil.core.breaker import Position
from counterfoil.ledger.statements import limiting as statements


class Standing(NamedTuple):
    """One sink, or one type that is held to less than its sink, as the workers last said."""

    name: str
    type: str  #: "": the sink itself
    concurrency: int | None  #: set by a person; None: both limits are as declared
    per_second: float | None
    position: Position
    failures: int
    opened_at: datetime | None
    until: datetime | None
    in_flight: int
    wanted: int  #: calls that the workers would make if they could, those in flight included
    workers: int
    now: datetime


class Sharer(NamedTuple):
    """A living worker's share."""

    session: int
    worker: str
    type: str
    slots: int
    in_use: int
    wanted: int


class Outage(NamedTuple):
    """A time in which nothing was sent."""

    opened_at: datetime
    closed_at: datetime | None  #: None: it is open


def standings(connection: Connection) -> list[Standing]:
    """Every sink that a worker ever asked for."""
    rows = connection.execute(statements.sinks()).mappings()
    return [Standing(**{name: row[name] for name in Standing._fields} | {"position": Position(row["position"])}) for row in rows]


def sharers(connection: Connection, name: str) -> list[Sharer]:
    """The living workers that share a sink."""
    return [Sharer(*row) for row in connection.execute(statements.shares(name))]


def outages(connection: Connection, name: str, limit: int) -> list[Outage]:
    """The newest first."""
    return [Outage(*row) for row in connection.execute(statements.outages(name, limit))]


def down(standings: Iterable[Standing]) -> list[Standing]:
    """Those whose breaker is not closed."""
    return [one for one in standings if one.position is not Position.CLOSED]
