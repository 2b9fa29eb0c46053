"""Making and migrating a ledger's database, and saying which migration it is at.

A database holds one ledger; its name is written once, by `initialise`, and never changed: it is part of every operation_id.
"""

import re
import secrets

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, text
from sqlalchemy.dialects.postgresql import insert

from counterfoil.core.errors import Refused
from counterfoil.core.reasons import Reason
from counterfoil.ledger.engine import ledger_engine
from counterfoil.ledger.tables import SCHEMA, digest_secret, setting

NAME = re.compile(r"[a-z][a-z0-9_-]{0,39}")


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", "counterfoil:ledger/migrations")
    config.set_main_option("path_separator", "os")
    return config


def newest() -> str:
    """The newest migration that this program knows."""
    head = ScriptDirectory.from_config(_config()).get_current_head()
    assert head is not None
    return head


def current(connection: Connection) -> str | None:
    """The migration that the database is at; None where there is no ledger."""
    if connection.execute(text("SELECT to_regclass(:t)"), {"t": f"{SCHEMA}.alembic_version"}).scalar_one() is None:
        return None
    context = MigrationContext.configure(connection, opts={"version_table_schema": SCHEMA})
    return context.get_current_revision()


def initialise(url: str, *, ledger: str, state_schema: int = 1) -> None:
    """Creates or migrates the ledger in this database and writes its name. The same again changes nothing.

    `state_schema` is the id that `registry.lock` gives the state record's schema; a new one replaces the old.

    Raises Refused where the name is not one ([a-z][a-z0-9_-]{0,39}), or where the database holds a ledger of another name.
    """
    if not NAME.fullmatch(ledger):
        raise Refused(Reason.LEDGER_NAME, subject=ledger[:60])
    engine = ledger_engine(url)
    try:
        with engine.connect() as connection:
            config = _config()
            config.attributes["connection"] = connection
            command.upgrade(config, "head")
            connection.commit()
        with engine.begin() as connection:
            _write_identity(connection, ledger, state_schema)
    finally:
        engine.dispose()


def _write_identity(connection: Connection, ledger: str, state_schema: int) -> None:
    for name, value in (("ledger", ledger), ("epoch", "0")):
        connection.execute(insert(setting).values(name=name, value=value).on_conflict_do_nothing())
    schema = insert(setting).values(name="state_schema", value=str(state_schema))
    connection.execute(schema.on_conflict_do_update(index_elements=["name"], set_={"value": schema.excluded.value}))
    connection.execute(insert(digest_secret).values(id=1, value=secrets.token_bytes(32)).on_conflict_do_nothing())
    there = connection.execute(setting.select().where(setting.c.name == "ledger")).one().value
    if there != ledger:
        raise Refused(Reason.LEDGER_NAME_FIXED, subject=there)
