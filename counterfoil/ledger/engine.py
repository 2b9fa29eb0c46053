"""Engines of our own processes, and the unit of work: one transaction, run again as a whole when PostgreSQL asks for it.

Engines hide parameters from errors and prepare nothing on the server, so that pgbouncer may stand in between.
"""

from collections.abc import Callable
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine, create_engine, event, exc, make_url

from counterfoil.ledger.arrays import prepare_driver
from counterfoil.ledger.away import sqlstate

T = TypeVar("T")

#: SQLSTATEs after which the whole unit is run again: serialization failure, deadlock.
AGAIN = frozenset({"40001", "40P01"})
#: How often; a unit that loses this many times in a row has another fault.
TIMES = 10


def ledger_engine(url: str, *, pool_size: int = 4, connect_timeout: int = 5) -> Engine:
    """An engine on a ledger's database. `connect_timeout` in seconds."""
    target = make_url(url)
    if target.drivername in ("postgres", "postgresql"):
        target = target.set(drivername="postgresql+psycopg")
    engine = create_engine(
        target,
        pool_size=pool_size,
        max_overflow=0,
        pool_pre_ping=True,
        hide_parameters=True,
        connect_args={"prepare_threshold": None, "connect_timeout": connect_timeout, "application_name": "counterfoil"},
    )

    @event.listens_for(engine, "connect")
    def _(driver: Any, _record: Any) -> None:
        prepare_driver(driver)

    return engine


def in_transaction(engine: Engine, unit: Callable[[Connection], T]) -> T:
    """Runs `unit` in one transaction; on 40001 and 40P01 the whole of it again (D88)."""
    for left in range(TIMES - 1, -1, -1):
        try:
            with engine.begin() as connection:
                return unit(connection)
        except exc.DBAPIError as error:
            if left == 0 or sqlstate(error) not in AGAIN:
                raise
    raise AssertionError("unreachable: the last round returns or raises")
