"""Counts over a whole ledger, for the demo and for people. `tally` reads every row of `state`: never for a hot path."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from sqlalchemy import Connection

from counterfoil.core.states import State
from counterfoil.ledger.statements import tallying as statements


@dataclass(frozen=True, slots=True)
class Counted:
    """One type and state; `more` says whether tries are left."""

    type: str
    state: State
    more: bool


@dataclass(frozen=True, slots=True)
class Tally:
    """How many of each, at one moment."""

    operations: Mapping[Counted, int]
    unpublished: int  #: outbox rows
    kept_raw: int  #: held and quarantined records

    def of(self, *states: State) -> int:
        return sum(count for counted, count in self.operations.items() if counted.state in states)

    @property
    def total(self) -> int:
        return sum(self.operations.values())


def tally(connection: Connection) -> Tally:
    """Count everything."""
    rows = connection.execute(statements.standing()).tuples()
    return Tally(
        {Counted(type_, State(state), more): count for type_, state, more, count in rows},
        connection.execute(statements.unpublished()).scalar_one(),
        connection.execute(statements.kept_raw()).scalar_one(),
    )


def live_sessions(connection: Connection, role: str) -> int:
    """Sessions of that role whose lease runs."""
    return int(connection.execute(statements.live_sessions(role)).scalar_one())


def running_by_worker(connection: Connection) -> dict[str, int]:
    """How many attempts each worker holds, by the name of its session: "host:pid"."""
    return dict(connection.execute(statements.running_by_session()).tuples().all())


def events_for(connection: Connection, reason: str) -> int:
    """Events with that reason, over all operations."""
    return int(connection.execute(statements.events_for(reason)).scalar_one())


class Unfinished(NamedTuple):
    """What is open of one type."""

    open: int  #: not final, those below included
    in_review: int
    quarantined: int


def unfinished(connection: Connection) -> dict[str, Unfinished]:
    """By type; a type with nothing open is left out."""
    return {row.type: Unfinished(row.open, row.in_review, row.quarantined) for row in connection.execute(statements.unfinished())}
