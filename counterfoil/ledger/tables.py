"""The tables of a ledger, as SQLAlchemy Core. Migrations are the truth about a database; this mirrors the newest one.

It holds no statement and no rule; the CHECK constraints repeat what `counterfoil.core.states` says.
"""

from datetime import datetime

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    DateTime,
    Identity,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    SmallInteger,
    Table,
    Text,
    Uuid,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.types import TypeEngine

from counterfoil.core.roads import KINDS, TO_WORKERS

SCHEMA = "counterfoil"
metadata = MetaData(schema=SCHEMA)

instant: TypeEngine[datetime] = DateTime(timezone=True)
#: The ledger's clock: the database's, in one function that only a test's ledger replaces by a shifted one.
ledger_time = func.counterfoil.ledger_time(type_=instant)

STATES = (
    "queued",
    "running",
    "retry_wait",
    "awaiting_confirmation",
    "succeeded",
    "confirmed",
    "quarantined",
    "manual_review",
    "compensating",
    "compensated",
    "not_applicable",
)


def _one_of(column: str, values: tuple[str, ...]) -> str:
    return f"{column} IN ({', '.join(repr(value) for value in values)})"


#: What the ledger says of itself: its name, its epoch, the id of its state records' schema, accepted partition counts.
setting = Table(
    "setting",
    metadata,
    Column("name", Text, primary_key=True),
    Column("value", Text, nullable=False),
    Column("changed_at", instant, nullable=False, server_default=func.now()),
)

#: Secrets of the keyed digests, by the id that each digest carries. Rotated by adding a row; never deleted while one is carried.
digest_secret = Table(
    "digest_secret",
    metadata,
    Column("id", SmallInteger, primary_key=True, autoincrement=False),
    Column("value", LargeBinary, nullable=False),
    Column("created_at", instant, nullable=False, server_default=func.now()),
)

#: Written once. `digest` is the keyed digest of the first revision's content, under the secret `digest_secret`.
operation = Table(
    "operation",
    metadata,
    Column("number", BigInteger, Identity(always=True), primary_key=True),
    Column("operation_id", Uuid, nullable=False, unique=True),
    Column("type", Text, nullable=False),
    Column("entity", Text, nullable=False),
    Column("version", Text),
    Column("digest", LargeBinary, nullable=False),
    Column("digest_secret", SmallInteger, nullable=False),
    Column("correlation_id", Text),
    Column("traceparent", Text),
    Column("created_at", instant, nullable=False),
    Index("operation_correlation", "correlation_id", postgresql_where=text("correlation_id IS NOT NULL")),
)

#: The revisions of an operation's data: `value` is the framed Avro that travels, `value_hash` its sha256.
payload = Table(
    "payload",
    metadata,
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    Column("revision", Integer, primary_key=True, autoincrement=False),
    Column("value", LargeBinary, nullable=False),
    Column("value_hash", LargeBinary, nullable=False),
    Column("created_at", instant, nullable=False),
)

#: Where an operation stands: narrow, and the one table whose rows are updated.
state = Table(
    "state",
    metadata,
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    Column("state", Text, nullable=False),
    Column("sequence", Integer, nullable=False, server_default="0"),  # rises by one with each transition
    Column("events", Integer, nullable=False, server_default="1"),  # how many events the operation has
    Column("attempt", Integer, nullable=False, server_default="0"),
    Column("tries_left", Integer, nullable=False),
    Column("revision", Integer, nullable=False, server_default="1"),
    Column("generation", Integer, nullable=False, server_default="0"),
    Column("outcome", Text),  # of the latest attempt
    Column("doubtful_since", instant),  # admission of the first doubtful attempt
    Column("doubtful_revision", Integer),
    Column("doubtful_generation", Integer),
    Column("unresolved", Boolean, nullable=False, server_default="false"),
    Column("admitted_at", instant),
    Column("attempt_until", instant),  # end of the latest attempt's maximum run time
    Column("session", BigInteger),  # the worker session that holds it
    Column("cancel_asked", Boolean, nullable=False, server_default="false"),
    Column("accepted_risk", Boolean, nullable=False, server_default="false"),
    Column("not_before", instant),  # earliest admission
    Column("sent_at", instant),  # when the newest command record of this state went into the outbox; NULL: not yet
    Column("sent_id", BigInteger),  # the outbox id of that record: it may wait there, be noted in `published`, or be lost
    Column("due_at", instant),  # when the next thing must happen
    Column("closed_at", instant),
    Column("record_road", Text),  # the record it was admitted from
    Column("record_partition", Integer),
    Column("record_offset", BigInteger),
    Column("remote_id", Text),
    Column("remote_version", Text),
    Column("sink_time", instant),
    Column("result_key", Text),
    Column("reason", Text, nullable=False),
    Column("chain", LargeBinary, nullable=False),  # hash of the operation's newest event
    Column("updated_at", instant, nullable=False),
    CheckConstraint(_one_of("state", STATES), name="state_known"),
    CheckConstraint("(closed_at IS NULL) = (due_at IS NOT NULL)", name="state_due_or_closed"),
    CheckConstraint("state NOT IN ('confirmed', 'compensated', 'not_applicable') OR closed_at IS NOT NULL", name="state_final"),
    CheckConstraint(
        "closed_at IS NULL OR state IN ('confirmed', 'compensated', 'not_applicable', 'succeeded')", name="state_closed"
    ),
    CheckConstraint("(state = 'running') = (session IS NOT NULL)", name="state_held"),
    CheckConstraint("state <> 'running' OR (attempt_until IS NOT NULL AND outcome = 'open')", name="state_open"),
    CheckConstraint("(doubtful_since IS NULL) = (doubtful_revision IS NULL)", name="state_doubt"),
    CheckConstraint("tries_left >= 0 AND attempt >= 0 AND sequence >= 0 AND events >= 1", name="state_counts"),
    CheckConstraint(_one_of("record_road", tuple(TO_WORKERS.values())), name="state_road"),
    Index("state_due", "state", "due_at", postgresql_where=text("due_at IS NOT NULL")),
)

#: Append-only, by time partition. `content` is the keyed digest of what the event says; `chain` covers the one before.
event = Table(
    "event",
    metadata,
    Column("number", BigInteger, nullable=False),
    Column("ordinal", Integer, nullable=False),
    Column("sequence", Integer, nullable=False),
    Column("at", instant, nullable=False),
    Column("kind", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("reason", Text, nullable=False),
    Column("detail", JSONB),
    Column("secret", SmallInteger, nullable=False),
    Column("content", LargeBinary, nullable=False),
    Column("chain", LargeBinary, nullable=False),
    Index("event_number", "number"),
    postgresql_partition_by="RANGE (at)",
)

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
    CheckConstraint(_one_of("kind", KINDS), name="outbox_kind"),
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

#: Kafka records kept raw: quarantined (undecodable) or held (no ledger row, no capable worker). `id` is the cause's id.
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
    CheckConstraint(_one_of("status", ("quarantined", "held", "released")), name="raw_record_status"),
    Index("raw_record_place", "topic", "partition", "record_offset"),
    Index("raw_record_held", "at", "id", postgresql_where=text("status = 'held'")),
    Index("raw_record_number", "number", postgresql_where=text("number IS NOT NULL")),
)

#: One row a process session: its lease is every lease of what it holds.
worker = Table(
    "worker",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("role", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("started_at", instant, nullable=False),
    Column("heartbeat_at", instant, nullable=False),
    Column("lease_until", instant, nullable=False),
    Column("stopped_at", instant),
    Column("capable", JSONB),
    CheckConstraint(_one_of("role", ("worker", "relay", "reconciler")), name="worker_role"),
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
