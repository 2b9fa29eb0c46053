"""The ledger's first tables, its clock and its time partitions."""

from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

TABLES = """
CREATE TABLE counterfoil.acknowledged (
    topic TEXT NOT NULL,
    partition INTEGER NOT NULL,
    up_to BIGINT NOT NULL,
    session BIGINT NOT NULL,
    at TIMESTAMP WITH TIME ZONE NOT NULL
);
CREATE INDEX acknowledged_place ON counterfoil.acknowledged (topic, partition, up_to);

CREATE TABLE counterfoil.act (
    id BIGINT GENERATED ALWAYS AS IDENTITY,
    at TIMESTAMP WITH TIME ZONE NOT NULL,
    actor TEXT NOT NULL,
    action TEXT NOT NULL,
    number BIGINT,
    reason TEXT NOT NULL,
    result TEXT NOT NULL,
    chain BYTEA NOT NULL,
    PRIMARY KEY (id)
);

CREATE TABLE counterfoil.digest_secret (
    id SMALLINT NOT NULL,
    value BYTEA NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    PRIMARY KEY (id)
);

CREATE TABLE counterfoil.event (
    number BIGINT NOT NULL,
    ordinal INTEGER NOT NULL,
    sequence INTEGER NOT NULL,
    at TIMESTAMP WITH TIME ZONE NOT NULL,
    kind TEXT NOT NULL,
    state TEXT NOT NULL,
    attempt INTEGER NOT NULL,
    reason TEXT NOT NULL,
    detail JSONB,
    secret SMALLINT NOT NULL,
    content BYTEA NOT NULL,
    chain BYTEA NOT NULL
)
 PARTITION BY RANGE (at);
CREATE INDEX event_number ON counterfoil.event (number);

CREATE TABLE counterfoil.operation (
    number BIGINT GENERATED ALWAYS AS IDENTITY,
    operation_id UUID NOT NULL,
    type TEXT NOT NULL,
    entity TEXT NOT NULL,
    version TEXT,
    digest BYTEA NOT NULL,
    digest_secret SMALLINT NOT NULL,
    correlation_id TEXT,
    traceparent TEXT,
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    PRIMARY KEY (number),
    UNIQUE (operation_id)
);
CREATE INDEX operation_correlation ON counterfoil.operation (correlation_id) WHERE correlation_id IS NOT NULL;

CREATE TABLE counterfoil.outbox (
    shard SMALLINT NOT NULL,
    id BIGINT GENERATED ALWAYS AS IDENTITY (CACHE 1),
    kind TEXT NOT NULL,
    type TEXT NOT NULL,
    number BIGINT,
    operation_id UUID,
    revision INTEGER DEFAULT '0' NOT NULL,
    generation INTEGER DEFAULT '0' NOT NULL,
    key BYTEA,
    value BYTEA,
    headers JSONB,
    traceparent TEXT,
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    PRIMARY KEY (shard, id),
    CONSTRAINT outbox_kind CHECK (kind IN ('command', 'retry', 'state', 'dead_letter')),
    CONSTRAINT outbox_shard CHECK (shard BETWEEN 0 AND 63)
);

CREATE TABLE counterfoil.payload (
    number BIGINT NOT NULL,
    revision INTEGER NOT NULL,
    value BYTEA NOT NULL,
    value_hash BYTEA NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    PRIMARY KEY (number, revision)
);

CREATE TABLE counterfoil.published (
    number BIGINT,
    outbox_id BIGINT NOT NULL,
    kind TEXT NOT NULL,
    partition INTEGER NOT NULL,
    record_offset BIGINT NOT NULL,
    at TIMESTAMP WITH TIME ZONE NOT NULL
)
 PARTITION BY RANGE (at);
CREATE INDEX published_number ON counterfoil.published (number);

CREATE TABLE counterfoil.raw_record (
    id UUID NOT NULL,
    status TEXT NOT NULL,
    reason TEXT NOT NULL,
    type TEXT NOT NULL,
    number BIGINT,
    topic TEXT NOT NULL,
    partition INTEGER NOT NULL,
    record_offset BIGINT NOT NULL,
    record_time TIMESTAMP WITH TIME ZONE,
    key BYTEA,
    value BYTEA,
    headers BYTEA,
    due_at TIMESTAMP WITH TIME ZONE NOT NULL,
    at TIMESTAMP WITH TIME ZONE NOT NULL,
    PRIMARY KEY (id),
    CONSTRAINT raw_record_status CHECK (status IN ('quarantined', 'held', 'released'))
);
CREATE INDEX raw_record_number ON counterfoil.raw_record (number) WHERE number IS NOT NULL;
CREATE INDEX raw_record_place ON counterfoil.raw_record (topic, partition, record_offset);

CREATE TABLE counterfoil.refused (
    outbox_id BIGINT NOT NULL,
    kind TEXT NOT NULL,
    type TEXT NOT NULL,
    number BIGINT,
    operation_id UUID,
    revision INTEGER NOT NULL,
    key BYTEA,
    value BYTEA,
    headers JSONB,
    traceparent TEXT,
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    reason TEXT NOT NULL,
    size INTEGER DEFAULT '0' NOT NULL,
    at TIMESTAMP WITH TIME ZONE NOT NULL,
    PRIMARY KEY (outbox_id)
);

CREATE TABLE counterfoil.setting (
    name TEXT NOT NULL,
    value TEXT NOT NULL,
    changed_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    PRIMARY KEY (name)
);

CREATE TABLE counterfoil.shard (
    shard SMALLINT NOT NULL,
    owner BIGINT,
    epoch INTEGER DEFAULT '0' NOT NULL,
    lease_until TIMESTAMP WITH TIME ZONE,
    free_from TIMESTAMP WITH TIME ZONE,
    PRIMARY KEY (shard),
    CONSTRAINT shard_range CHECK (shard BETWEEN 0 AND 63)
);

CREATE TABLE counterfoil.state (
    number BIGINT NOT NULL,
    state TEXT NOT NULL,
    sequence INTEGER DEFAULT '0' NOT NULL,
    events INTEGER DEFAULT '1' NOT NULL,
    attempt INTEGER DEFAULT '0' NOT NULL,
    tries_left INTEGER NOT NULL,
    revision INTEGER DEFAULT '1' NOT NULL,
    generation INTEGER DEFAULT '0' NOT NULL,
    outcome TEXT,
    doubtful_since TIMESTAMP WITH TIME ZONE,
    doubtful_revision INTEGER,
    doubtful_generation INTEGER,
    unresolved BOOLEAN DEFAULT 'false' NOT NULL,
    admitted_at TIMESTAMP WITH TIME ZONE,
    attempt_until TIMESTAMP WITH TIME ZONE,
    session BIGINT,
    cancel_asked BOOLEAN DEFAULT 'false' NOT NULL,
    accepted_risk BOOLEAN DEFAULT 'false' NOT NULL,
    not_before TIMESTAMP WITH TIME ZONE,
    sent_at TIMESTAMP WITH TIME ZONE,
    sent_id BIGINT,
    due_at TIMESTAMP WITH TIME ZONE,
    closed_at TIMESTAMP WITH TIME ZONE,
    record_road TEXT,
    record_partition INTEGER,
    record_offset BIGINT,
    remote_id TEXT,
    remote_version TEXT,
    sink_time TIMESTAMP WITH TIME ZONE,
    result_key TEXT,
    reason TEXT NOT NULL,
    chain BYTEA NOT NULL,
    updated_at TIMESTAMP WITH TIME ZONE NOT NULL,
    PRIMARY KEY (number),
    CONSTRAINT state_known CHECK (state IN ('queued', 'running', 'retry_wait', 'awaiting_confirmation', 'succeeded',
        'confirmed', 'quarantined', 'manual_review', 'compensating', 'compensated', 'not_applicable')),
    CONSTRAINT state_due_or_closed CHECK ((closed_at IS NULL) = (due_at IS NOT NULL)),
    CONSTRAINT state_final CHECK (state NOT IN ('confirmed', 'compensated', 'not_applicable') OR closed_at IS NOT NULL),
    CONSTRAINT state_closed CHECK (closed_at IS NULL OR state IN ('confirmed', 'compensated', 'not_applicable', 'succeeded')),
    CONSTRAINT state_held CHECK ((state = 'running') = (session IS NOT NULL)),
    CONSTRAINT state_open CHECK (state <> 'running' OR (attempt_until IS NOT NULL AND outcome = 'open')),
    CONSTRAINT state_doubt CHECK ((doubtful_since IS NULL) = (doubtful_revision IS NULL)),
    CONSTRAINT state_counts CHECK (tries_left >= 0 AND attempt >= 0 AND sequence >= 0 AND events >= 1),
    CONSTRAINT state_road CHECK (record_road IN ('commands', 'retry'))
);
CREATE INDEX state_due ON counterfoil.state (state, due_at) WHERE due_at IS NOT NULL;

CREATE TABLE counterfoil.worker (
    id BIGINT GENERATED ALWAYS AS IDENTITY,
    role TEXT NOT NULL,
    name TEXT NOT NULL,
    started_at TIMESTAMP WITH TIME ZONE NOT NULL,
    heartbeat_at TIMESTAMP WITH TIME ZONE NOT NULL,
    lease_until TIMESTAMP WITH TIME ZONE NOT NULL,
    stopped_at TIMESTAMP WITH TIME ZONE,
    capable JSONB,
    PRIMARY KEY (id),
    CONSTRAINT worker_role CHECK (role IN ('worker', 'relay', 'reconciler'))
);

"""

CLOCK = """
CREATE FUNCTION counterfoil.ledger_time() RETURNS timestamptz LANGUAGE sql VOLATILE AS 'SELECT clock_timestamp()';
COMMENT ON FUNCTION counterfoil.ledger_time() IS 'The time of this ledger. Only a test replaces it.';
"""

# Days are UTC days; a partition's name says which. Safe to call again and from several sessions (the lock is held to the commit).
PARTITIONS = """
CREATE FUNCTION counterfoil.make_partitions(ahead integer) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    day date;
    parent text;
    made integer := 0;
    today date := (counterfoil.ledger_time() AT TIME ZONE 'UTC')::date;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtext('counterfoil.make_partitions'));
    FOREACH parent IN ARRAY ARRAY['event', 'published'] LOOP
        FOR i IN -1..ahead LOOP
            day := today + i;
            IF to_regclass(format('counterfoil.%I', parent || '_' || to_char(day, 'YYYYMMDD'))) IS NULL THEN
                EXECUTE format(
                    'CREATE TABLE counterfoil.%I PARTITION OF counterfoil.%I FOR VALUES FROM (%L) TO (%L)',
                    parent || '_' || to_char(day, 'YYYYMMDD'), parent,
                    day::timestamp AT TIME ZONE 'UTC', (day + 1)::timestamp AT TIME ZONE 'UTC');
                made := made + 1;
            END IF;
        END LOOP;
    END LOOP;
    RETURN made;
END $$;
"""


def upgrade() -> None:
    for statement in TABLES.split(";\n"):
        if statement.strip():
            op.execute(statement)
    for statement in filter(str.strip, CLOCK.split(";\n")):
        op.execute(statement)
    op.execute(PARTITIONS)
    op.execute("SELECT counterfoil.make_partitions(7)")
    op.execute("INSERT INTO counterfoil.shard (shard) SELECT generate_series(0, 63)")


def downgrade() -> None:
    raise RuntimeError("a ledger is not migrated backwards: restore a backup taken before the migration")
