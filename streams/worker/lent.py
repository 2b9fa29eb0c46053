"""The ledger's transaction while it is lent to an effect: it may write in it and must not end it.

Ending it is refused on its way to the server where that can be seen, and noticed afterwards where it cannot; what an effect set
for its session does not outlive its transaction, so that a pooler may stand in between. A connection whose transaction was ended,
or nearly, is thrown away.
"""

from __future__ import annotations

import re
from typing import Any, NoReturn, cast

import psycopg
from sqlalchemy import Connection, exc

#: First words of statements that end a transaction; going back to a savepoint does not.
_ENDS = re.compile(
    r"(?:\s|--[^\n]*(?:\n|$)|/\*.*?\*/|;)*(?:commit|end|abort|rollback(?!\s+(?:work\s+|transaction\s+)?to\b)|prepare\s+transaction)\b",
    re.IGNORECASE | re.DOTALL,
)
#: The roles are no settings for RESET ALL. One round trip: without parameters psycopg sends all of it at once.
_BACK = "RESET ALL; SET SESSION AUTHORIZATION DEFAULT; RESET ROLE; SELECT pg_current_xact_id_if_assigned()::text"
_WHICH = "SELECT pg_current_xact_id()::text"


class EndedTransaction(Exception):
    """An effect ended the transaction that was lent to it, or tried to."""


class _Cursor(psycopg.Cursor[Any]):
    """Refuses to end the transaction."""

    def execute(self, query: Any, *args: Any, **rest: Any) -> _Cursor:
        _look(self.connection, query)
        return super().execute(query, *args, **rest)

    def executemany(self, query: Any, *args: Any, **rest: Any) -> None:
        _look(self.connection, query)
        super().executemany(query, *args, **rest)


class Lent:
    """One transaction, from `with` on in an effect's hands; `take_back` before anything of ours follows. Locks must be taken."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._driver = cast(Any, connection.connection.driver_connection)
        self._refused = False
        self._id = connection.exec_driver_sql(_WHICH).scalar_one()

    @property
    def broken(self) -> bool:
        """Whether the line to the database broke while it was lent."""
        return self._connection.invalidated or self._driver.closed

    def __enter__(self) -> Lent:
        driver = self._driver
        self._cursors = driver.cursor_factory
        driver.cursor_factory = _Cursor
        driver.commit = driver.rollback = self.refuse
        driver.counterfoil_lent = self
        return self

    def __exit__(self, *_: object) -> None:
        driver = self._driver
        driver.cursor_factory = self._cursors
        del driver.commit, driver.rollback, driver.counterfoil_lent

    def refuse(self) -> NoReturn:
        """Note the attempt; an effect may swallow what is raised."""
        self._refused = True
        raise EndedTransaction

    def look(self) -> None:
        """After an effect. Raises EndedTransaction where it certainly has ended the transaction, or tried to."""
        if self._refused or (not self.broken and self._driver.info.transaction_status == psycopg.pq.TransactionStatus.IDLE):
            self._over()

    def take_back(self) -> None:
        """Undo what effects have set for the session. Raises EndedTransaction where it is no longer the same transaction."""
        self.look()
        try:
            cursor = self._driver.execute(_BACK)
            while cursor.nextset():
                pass
            same = cursor.fetchone()[0] == self._id
        except psycopg.Error as error:
            raise exc.DatabaseError(None, None, error, hide_parameters=True) from None
        if not same:
            self._over()

    def ended(self) -> bool:
        """After an effect raised: whether it has ended the transaction, or tried to. The connection is thrown away then."""
        try:
            self.look()
            if not self.broken and self._driver.info.transaction_status == psycopg.pq.TransactionStatus.INTRANS:
                self.take_back()
        except EndedTransaction:
            return True
        except exc.DBAPIError:
            return False
        return False

    def throw_away(self) -> None:
        """No connection that is broken or in another transaction goes back to the pool."""
        self._connection.invalidate()

    def _over(self) -> NoReturn:
        self._refused = True
        self.throw_away()
        raise EndedTransaction


def _look(driver: Any, query: object) -> None:
    text = query.decode("utf-8", "replace") if isinstance(query, bytes) else query if isinstance(query, str) else ""
    if _ENDS.match(text):
        driver.counterfoil_lent.refuse()
