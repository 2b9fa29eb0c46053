"""The tables of records: what waits to leave for Kafka and what became of it, and what came from there.

They mirror the newest migration, as `tables` does; no statement and no rule is here.
"""

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    Identity,
    Index,
    Integer,
    LargeBinary,
    SmallInteger,
    Table,
    Text,
    Uuid,
    column,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB

from counterfoil.core.roads import KINDS
from counterfoil.ledger.tables import instant, metadata, one_of

#: What waits to be published, in the transaction that made it true. `value` NULL: of a command, the payload's bytes; else
#: a tombstone.
outbox = Table(
    "outbox",
    metadata,
    Column("shard", SmallInteger, primary_key=True, autoincrement=False),
    Column("id", BigInteger, Identity(always=True, cache=1), primary_key=True),
    Column("kind", Text, nullable=False),
    Column("type", Text, nullable=False),
    Column("number", BigInteger),
    Column("operation_id", Uuid),
    Column("revision", Integer, nullable=False, server_default="0"),
    Column("generation", Integer, nullable=False, server_default="0"),
    Column("key", LargeBinary),
    Column("value", LargeBinary),
    Column("headers", JSONB),
    Column("traceparent", Text),
    Column("created_at", instant, nullable=False),
    CheckConstraint(one_of("kind", KINDS), name="outbox_kind"),
    CheckConstraint("shard BETWEEN 0 AND 63", name="outbox_shard"),
)

#: The note of each delivery report, by time partition: it answers "did it leave, and where to?".
published = Table(
    "published",
    metadata,
    Column("number", BigInteger),
    Column("outbox_id", BigInteger, nullable=False),
    Column("kind", Text, nullable=False),
    Column("partition", Integer, nullable=False),
    Column("record_offset", BigInteger, nullable=False),
    Column("at", instant, nullable=False),
    Index("published_number", "number"),
    postgresql_partition_by="RANGE (at)",
)

#: Outbox rows that can never be sent, moved aside with their reason.
refused = Table(
    "refused",
    metadata,
    Column("outbox_id", BigInteger, primary_key=True, autoincrement=False),
    Column("kind", Text, nullable=False),
    Column("type", Text, nullable=False),
    Column("number", BigInteger),
    Column("operation_id", Uuid),
    Column("revision", Integer, nullable=False),
    Column("key", LargeBinary),
    Column("value", LargeBinary),
    Column("headers", JSONB),
    Column("traceparent", Text),
    Column("created_at", instant, nullable=False),
    Column("reason", Text, nullable=False),
    Column("size", Integer, nullable=False, server_default="0"),
    Column("at", instant, nullable=False),
)

_HELD_WITH = text("status = 'held' AND number IS NOT NULL")

#: Kafka records kept raw: quarantined (undecodable), held (no ledger row, no capable worker), or over: a hold that reached
#: its deadline. `id` is the cause's id.
raw_record = Table(
    "raw_record",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("status", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("type", Text, nullable=False),
    Column("number", BigInteger),
    Column("topic", Text, nullable=False),
    Column("partition", Integer, nullable=False),
    Column("record_offset", BigInteger, nullable=False),
    Column("record_time", instant),
    Column("key", LargeBinary),
    Column("value", LargeBinary),
    Column("headers", LargeBinary),  # every header, as an Avro-free frame: see ledger/raw_records.py
    Column("due_at", instant, nullable=False),
    Column("at", instant, nullable=False),
    CheckConstraint(one_of("status", ("quarantined", "held", "released", "over", "discarded")), name="raw_record_status"),
    Index("raw_record_place", "topic", "partition", "record_offset"),
    Index("raw_record_held", "at", "id", postgresql_where=text("status = 'held'")),
    Index("raw_record_capable", "type", func.counterfoil.frame_schema(column("value")), "at", postgresql_where=_HELD_WITH),
    Index("raw_record_deadline", "due_at", postgresql_where=_HELD_WITH),
    Index("raw_record_unnamed", "at", "id", postgresql_where=text("status = 'held' AND number IS NULL")),
    Index("raw_record_number", "number", postgresql_where=text("number IS NOT NULL")),
)

#: The 64 shards of the outbox and who publishes them; `epoch` rises with each takeover, and notes carry it.
shard = Table(
    "shard",
    metadata,
    Column("shard", SmallInteger, primary_key=True, autoincrement=False),
    Column("owner", BigInteger),
    Column("epoch", Integer, nullable=False, server_default="0"),
    Column("lease_until", instant),
    Column("free_from", instant),  # one delivery time-out after the old lease ended
    CheckConstraint("shard BETWEEN 0 AND 63", name="shard_range"),
)

#: A row a commit: the group has completed every record of the partition below `up_to`.
acknowledged = Table(
    "acknowledged",
    metadata,
    Column("topic", Text, nullable=False),
    Column("partition", Integer, nullable=False),
    Column("up_to", BigInteger, nullable=False),
    Column("session", BigInteger, nullable=False),
    Column("at", instant, nullable=False),
    Index("acknowledged_place", "topic", "partition", "up_to"),
)
