"""The table of what is being decoded, as SQLAlchemy Core. Migrations are the truth about a database; this mirrors the newest."""

from sqlalchemy import BigInteger, CheckConstraint, Column, Integer, Table, Text
from sqlalchemy.dialects.postgresql import ARRAY

from counterfoil.ledger.tables import metadata

#: Which records of a partition are being decoded, and which are suspected of having killed the worker that decoded them.
decoding = Table(
    "decoding",
    metadata,
    Column("topic", Text, primary_key=True),
    Column("partition", Integer, primary_key=True, autoincrement=False),
    Column("epoch", Integer, nullable=False, server_default="0"),  # rises with each worker that takes the partition over
    Column("session", BigInteger, nullable=False, server_default="0"),  # the worker session that decodes
    Column("first_offset", BigInteger),  # NULL: nothing is being decoded
    Column("last_offset", BigInteger),
    Column("suspect_first", BigInteger),  # records up to `suspect_last` are decoded one by one
    Column("suspect_last", BigInteger),
    Column("died_together", BigInteger),  # the session that died last with several of them in hand
    Column("named_offset", BigInteger),  # the record that sessions died with alone
    Column("died_alone", ARRAY(BigInteger), nullable=False, server_default="{}"),  # those sessions
    CheckConstraint("(first_offset IS NULL) = (last_offset IS NULL) AND first_offset <= last_offset", name="decoding_range"),
    CheckConstraint(
        "(suspect_first IS NULL) = (suspect_last IS NULL) AND suspect_first <= suspect_last", name="decoding_suspects"
    ),
    postgresql_with={"fillfactor": 20},
)
