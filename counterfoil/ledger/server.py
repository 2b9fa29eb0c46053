"""What the database server says of itself, and who it says we are."""

from typing import NamedTuple

from sqlalchemy import Connection, text

_SERVER = text(
    """
SELECT CAST(current_setting('server_version_num') AS int) AS version, current_setting('synchronous_commit') AS synchronous_commit,
    current_setting('fsync') AS fsync
"""
)
_LOGIN = text("SELECT session_user")


class Server(NamedTuple):
    """Its version as PostgreSQL counts (180001 is 18.1), and what an acknowledged commit rests on."""

    version: int
    synchronous_commit: str
    fsync: str


def server(connection: Connection) -> Server:
    """As this session has it."""
    return Server(*connection.execute(_SERVER).one())


def login(connection: Connection) -> str:
    """The login of this session, whatever role it has taken since."""
    return str(connection.execute(_LOGIN).scalar_one())
