"""The tables of what people do, as SQLAlchemy Core. Migrations are the truth about a database; this mirrors the newest one."""

from sqlalchemy import BigInteger, Column, Index, LargeBinary, SmallInteger, Table, Text, text
from sqlalchemy.dialects.postgresql import JSONB

from counterfoil.ledger.tables import instant, metadata

#: What a person did: who (the database login), with what, why and with which result. Append-only, with a chain of its own.
act = Table(
    "act",
    metadata,
    Column("id", BigInteger, primary_key=True, autoincrement=False),  # one more than the act before: a removed one leaves a gap
    Column("at", instant, nullable=False),
    Column("actor", Text, nullable=False),  # the login of the session, whatever role it has taken since
    Column("action", Text, nullable=False),
    Column("number", BigInteger),  # of the operation, where the act is about one
    Column("subject", Text, nullable=False, server_default=""),  # what else it is about: a type, a sink, a plan
    Column("reason", Text, nullable=False),
    Column("result", Text, nullable=False),
    Column("detail", JSONB),
    Column("secret", SmallInteger, nullable=False, server_default="1"),  # the id of the digest's secret
    Column("content", LargeBinary, nullable=False, server_default=""),  # keyed digest of all that the act says
    Column("chain", LargeBinary, nullable=False),
    Index("act_number", "number", postgresql_where=text("number IS NOT NULL")),
)
