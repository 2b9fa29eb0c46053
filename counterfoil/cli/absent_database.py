"""Whether a database that cannot be connected to is merely not there, on a server that answers.

libpq gives no SQLSTATE for a refused connection, and its text is never read: so the server's own list of databases is asked, by
the same login, through a database that every server has. It must never say more of the URL than the database's name.
"""

import shlex

from sqlalchemy import Engine, make_url, text
from sqlalchemy.exc import SQLAlchemyError

from counterfoil.cli.exits import Exit
from counterfoil.cli.trouble import Trouble, sorted_out

UNREACHABLE = "database_unreachable"
EVERYWHERE = ("postgres", "template1")
_NAMED = text("SELECT EXISTS (SELECT FROM pg_database WHERE datname = :name)")


def explained(error: BaseException, database: str | None) -> Trouble:
    """The trouble that an exception means; `database` is the URL that was used, where it is known."""
    trouble = sorted_out(error)
    if trouble.code != UNREACHABLE or database is None:
        return trouble
    name = _absent(database)
    if name is None:
        return trouble
    return Trouble(
        "database_absent",
        f"The server answers, the database {name} does not exist.",
        f"`createdb {shlex.quote(name)}`, with the host, port and user of the setting `database`; or correct the name there.",
        Exit.REFUSED,
    )


def _absent(database: str) -> str | None:
    """The name of a database that its server does not have; None where it has it, or nobody could say."""
    from counterfoil.ledger.engine import ledger_engine

    url = make_url(database)
    name = url.database or url.username
    for there in EVERYWHERE if name else ():
        engine = ledger_engine(url.set(database=there).render_as_string(hide_password=False), pool_size=1, connect_timeout=2)
        try:
            return name if _asked(engine, name) is False else None
        except SQLAlchemyError:
            continue
        finally:
            engine.dispose()
    return None


def _asked(engine: Engine, name: str | None) -> bool:
    with engine.connect() as connection:
        return bool(connection.execute(_NAMED, {"name": name}).scalar_one())
