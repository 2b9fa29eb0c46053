"""The tables of dead letters and of plans, as SQLAlchemy Core. Migrations are the truth; this mirrors the newest one."""

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Identity,
    Index,
    Integer,
    LargeBinary,
    Table,
    Text,
    Uuid,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB

from counterfoil.ledger.tables import instant, metadata

#: What is or was quarantined: an index beside `state` and `raw_record`, kept by their triggers in the same transaction. `open`:
#: it still is.
dead_letter = Table(
    "dead_letter",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("number", BigInteger, unique=True),  # the operation; NULL: a record without one
    Column("raw", Uuid, unique=True),  # the cause of a raw record; NULL: an operation
    Column("type", Text, nullable=False),
    Column("entity_hash", BigInteger),  # to find the dead letters of one entity; never shown
    Column("reason", Text, nullable=False),
    Column("fingerprint", Text, nullable=False, server_default=""),  # last answer, class and place; of a raw record its topic
    Column("first_at", instant, nullable=False),
    Column("at", instant, nullable=False),
    Column("sequence", Integer, nullable=False, server_default="0"),  # of the state in which it was quarantined
    Column("revision", Integer, nullable=False, server_default="0"),  # that failed; a newer one means that it was corrected
    Column("replays", Integer, nullable=False, server_default="0"),  # of this content
    Column("replayed_at", instant),
    Column("open", Boolean, nullable=False),
    CheckConstraint("(number IS NULL) <> (raw IS NULL)", name="dead_letter_one"),
    Index("dead_letter_cause", "type", "reason", "fingerprint", "at", postgresql_where=text("open")),
    Index("dead_letter_at", "at", "id", postgresql_where=text("open")),
    Index("dead_letter_entity", "entity_hash", postgresql_where=text("open AND entity_hash IS NOT NULL")),
    Index(
        "dead_letter_replayed", "type", "reason", "fingerprint", "replayed_at", postgresql_where=text("replayed_at IS NOT NULL")
    ),
)

#: A frozen selection of dead letters, and what becomes of it. What fails after `cutoff` is not in it.
plan = Table(
    "plan",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("at", instant, nullable=False),
    Column("actor", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("filter", JSONB, nullable=False),
    Column("cutoff", instant, nullable=False),
    Column("grounds", Text),  # why a replay may end in another way; NULL: only what was corrected is sent
    Column("consumer", Text),  # the updated consumer that the person named
    Column("status", Text, nullable=False),
    Column("selected", BigInteger, nullable=False, server_default="0"),
    Column("digest", LargeBinary),  # over the ids and sequences of all its items, in order; NULL while freezing
    Column("preview", JSONB),  # what would be sent and what is refused, as it was counted last
    Column("finished_at", instant),
    CheckConstraint("status IN ('freezing', 'frozen', 'running', 'done', 'stopped')", name="plan_status"),
)

#: One dead letter of a plan; changed in the transaction that changes the dead letter, so exactly once whatever is killed.
plan_item = Table(
    "plan_item",
    metadata,
    Column("plan", BigInteger, primary_key=True, autoincrement=False),
    Column("position", BigInteger, primary_key=True, autoincrement=False),
    Column("dead_letter", BigInteger, nullable=False),
    Column("number", BigInteger),
    Column("raw", Uuid),
    Column("sequence", Integer, nullable=False),  # of the state that was frozen
    Column("status", Text, nullable=False, server_default="waiting"),
    Column("reason", Text),  # why it was refused
    Column("at", instant),
    CheckConstraint("status IN ('waiting', 'done', 'refused')", name="plan_item_status"),
    Index("plan_item_waiting", "plan", "position", postgresql_where=text("status = 'waiting'")),
    Index("plan_item_done", "number", postgresql_where=text("status <> 'waiting' AND number IS NOT NULL")),
)
