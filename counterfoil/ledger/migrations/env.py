"""Alembic's environment: it runs on the connection that `counterfoil.ledger.migrate` hands over, never from a file."""

from alembic import context
from sqlalchemy import Connection, text

from counterfoil.ledger.tables import SCHEMA
from counterfoil.ledger.tables_records import outbox

connection: Connection = context.config.attributes["connection"]
connection.execute(text(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}"))
# The version table lives in the schema. Without this commit the open transaction would swallow the migration.
connection.commit()
context.configure(connection=connection, target_metadata=outbox.metadata, version_table_schema=SCHEMA, include_schemas=True)
with context.begin_transaction():
    context.run_migrations()
