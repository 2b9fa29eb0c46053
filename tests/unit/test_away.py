"""What counts as the database being away: for workers, the relay and the command line alike."""

from __future__ import annotations

import pytest
from sqlalchemy import exc

from counterfoil.cli.exits import Exit
from counterfoil.cli.trouble import sorted_out
from counterfoil.ledger.away import is_away, sqlstate


class Failure(Exception):
    def __init__(self, state: str | None) -> None:
        super().__init__()
        self.sqlstate = state


def error(kind: type[exc.DBAPIError], state: str | None, *, invalidated: bool = False) -> exc.DBAPIError:
    return kind("SELECT 1", {}, Failure(state), connection_invalidated=invalidated)


@pytest.mark.parametrize(
    ("met", "away"),
    [
        (exc.TimeoutError(), True),
        (error(exc.OperationalError, None), True),
        (error(exc.ProgrammingError, None), False),
        (error(exc.InterfaceError, None, invalidated=True), True),
        (error(exc.OperationalError, "08006"), True),
        (error(exc.OperationalError, "53300"), True),
        (error(exc.OperationalError, "57P01"), True),
        (error(exc.OperationalError, "57014"), False),
        (error(exc.InternalError, "25006"), True),
        (error(exc.IntegrityError, "23505"), False),
        (ValueError(), False),
    ],
)
def test_it_is_told_by_class_and_state(met: Exception, away: bool) -> None:
    """L4: what says nothing about the call itself; the call may be made again."""
    assert is_away(met) is away
    if away:
        assert sorted_out(met).exit is Exit.UNREACHABLE
        assert sorted_out(met).code.startswith("database_")


def test_an_error_without_a_state_has_none() -> None:
    assert sqlstate(exc.TimeoutError()) is None
    assert sqlstate(error(exc.DataError, "22001")) == "22001"
