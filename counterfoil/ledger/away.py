"""Whether an error says that the database is away, and nothing about the call itself: the one place that sorts it.

By class and SQLSTATE; no text is read.
"""

from sqlalchemy import exc

#: Classes of SQLSTATE that mean "not now", whatever the statement: connection, resources, operator intervention.
AWAY = ("08", "53", "57P")
READ_ONLY = "25006"  # a standby answers: the primary is elsewhere


def is_away(error: BaseException) -> bool:
    """Whether an error of a call says that the database is away, and nothing about the call itself."""
    if isinstance(error, exc.TimeoutError):
        return True  # no connection of the pool came free
    if not isinstance(error, exc.DBAPIError):
        return False
    state = sqlstate(error)
    if error.connection_invalidated or state == READ_ONLY:
        return True
    if state is None:
        return isinstance(error, exc.OperationalError)
    return state.startswith(AWAY)


def sqlstate(error: BaseException) -> str | None:
    """PostgreSQL's code; None where it was not asked, or did not answer."""
    state = getattr(getattr(error, "orig", None), "sqlstate", None)
    return None if state is None else str(state)
