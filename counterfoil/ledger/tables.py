"""The tables of operations and of those who work on them, as SQLAlchemy Core; those of records are in `tables_records`.

Migrations are the truth about a database; this mirrors the newest one. It holds no statement and no rule; the CHECK constraints
repeat what `counterfoil.core.states` says.
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

from counterfoil.core.roads import TO_WORKERS
from counterfoil.core.states import State

SCHEMA = "counterfoil"
metadata = MetaData(schema=SCHEMA)

instant: TypeEngine[datetime] = DateTime(timezone=True)
#: The ledger's clock: the database's, in one function that only a test's ledger replaces by a shifted one.
ledger_time = func.counterfoil.ledger_time(type_=instant)


def one_of(column: str, values: tuple[str, ...]) -> str:
    """The condition that a column has one of these values."""
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
    Column("entity_id", Uuid),  # whose order it keeps; NULL: of a type without an order
    Column("position", BigInteger),  # its number in the entity (Strict), or its version (LatestWins)
    CheckConstraint(one_of("state", tuple(one.value for one in State)), name="state_known"),
    CheckConstraint("(closed_at IS NULL) = (due_at IS NOT NULL)", name="state_due_or_closed"),
    CheckConstraint("state NOT IN ('confirmed', 'compensated', 'not_applicable') OR closed_at IS NOT NULL", name="state_final"),
    CheckConstraint(
        "closed_at IS NULL OR state IN ('confirmed', 'compensated', 'not_applicable', 'succeeded')", name="state_closed"
    ),
    CheckConstraint("(state = 'running') = (session IS NOT NULL)", name="state_held"),
    CheckConstraint("state <> 'running' OR (attempt_until IS NOT NULL AND outcome = 'open')", name="state_open"),
    CheckConstraint("(doubtful_since IS NULL) = (doubtful_revision IS NULL)", name="state_doubt"),
    CheckConstraint("tries_left >= 0 AND attempt >= 0 AND sequence >= 0 AND events >= 1", name="state_counts"),
    CheckConstraint(one_of("record_road", tuple(TO_WORKERS.values())), name="state_road"),
    CheckConstraint("(entity_id IS NULL) = (position IS NULL)", name="state_place"),
    Index("state_due", "state", "due_at", postgresql_where=text("due_at IS NOT NULL")),
    Index(
        "state_line",
        "entity_id",
        "position",
        postgresql_where=text("entity_id IS NOT NULL AND due_at IS NOT NULL AND state <> 'succeeded'"),
    ),
    Index(
        "state_entity_doubt",
        "entity_id",
        "position",
        postgresql_where=text("entity_id IS NOT NULL AND doubtful_since IS NOT NULL"),
    ),
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
    CheckConstraint(one_of("role", ("worker", "relay", "reconciler")), name="worker_role"),
    Index("worker_live", "lease_until", postgresql_where=text("stopped_at IS NULL")),
)
