"""The tables of order per entity, as SQLAlchemy Core. Migrations are the truth about a database; this mirrors the newest one.

Only entities of ordered types have rows here. The place of an operation in its entity stands in `state`.
"""

from sqlalchemy import BigInteger, Column, Table, Uuid

from counterfoil.ledger.tables import metadata

#: One row an entity of an ordered type: what workers lock to admit and to settle, so that no operation of it is stranded between.
entity = Table(
    "entity",
    metadata,
    Column("id", Uuid, primary_key=True),  # derived from ledger, type and the entity's text
    Column("head", BigInteger),  # Strict: everything before this position is over for good
    Column("newest", BigInteger),  # LatestWins: the newest version that was ever admitted
)

#: One row an entity of a Strict type: its last number. Callers lock it from enqueue to their commit; workers never do.
entity_tail = Table(
    "entity_tail",
    metadata,
    Column("entity", Uuid, primary_key=True),
    Column("taken", BigInteger, nullable=False, server_default="0"),  # the last number that was given
)
