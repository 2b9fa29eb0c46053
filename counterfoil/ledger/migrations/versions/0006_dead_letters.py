"""Dead letters by their causes, frozen plans, and raw records that were discarded.

Triggers keep the index of dead letters, so that the release before this one, which knows nothing of it, keeps it too. They run
as the owner of the schema: a worker's login needs no right on it.
"""

from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

TABLES = """
CREATE TABLE counterfoil.dead_letter (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    number BIGINT UNIQUE,
    raw UUID UNIQUE,
    type TEXT NOT NULL,
    entity_hash BIGINT,
    reason TEXT NOT NULL,
    fingerprint TEXT DEFAULT '' NOT NULL,
    first_at TIMESTAMP WITH TIME ZONE NOT NULL,
    at TIMESTAMP WITH TIME ZONE NOT NULL,
    sequence INTEGER DEFAULT 0 NOT NULL,
    revision INTEGER DEFAULT 0 NOT NULL,
    replays INTEGER DEFAULT 0 NOT NULL,
    replayed_at TIMESTAMP WITH TIME ZONE,
    open BOOLEAN NOT NULL,
    CONSTRAINT dead_letter_one CHECK ((number IS NULL) <> (raw IS NULL))
);
CREATE INDEX dead_letter_cause ON counterfoil.dead_letter (type, reason, fingerprint, at) WHERE open;
CREATE INDEX dead_letter_at ON counterfoil.dead_letter (at, id) WHERE open;
CREATE INDEX dead_letter_entity ON counterfoil.dead_letter (entity_hash) WHERE open AND entity_hash IS NOT NULL;
CREATE INDEX dead_letter_replayed ON counterfoil.dead_letter (type, reason, fingerprint, replayed_at)
    WHERE replayed_at IS NOT NULL;

CREATE TABLE counterfoil.plan (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at TIMESTAMP WITH TIME ZONE NOT NULL,
    actor TEXT NOT NULL,
    reason TEXT NOT NULL,
    filter JSONB NOT NULL,
    cutoff TIMESTAMP WITH TIME ZONE NOT NULL,
    grounds TEXT,
    consumer TEXT,
    status TEXT NOT NULL,
    selected BIGINT DEFAULT 0 NOT NULL,
    digest BYTEA,
    preview JSONB,
    finished_at TIMESTAMP WITH TIME ZONE,
    CONSTRAINT plan_status CHECK (status IN ('freezing', 'frozen', 'running', 'done', 'stopped'))
);

CREATE TABLE counterfoil.plan_item (
    plan BIGINT NOT NULL,
    position BIGINT NOT NULL,
    dead_letter BIGINT NOT NULL,
    number BIGINT,
    raw UUID,
    sequence INTEGER NOT NULL,
    status TEXT DEFAULT 'waiting' NOT NULL,
    reason TEXT,
    at TIMESTAMP WITH TIME ZONE,
    PRIMARY KEY (plan, position),
    CONSTRAINT plan_item_status CHECK (status IN ('waiting', 'done', 'refused'))
);
CREATE INDEX plan_item_waiting ON counterfoil.plan_item (plan, position) WHERE status = 'waiting';
CREATE INDEX plan_item_done ON counterfoil.plan_item (number) WHERE status <> 'waiting' AND number IS NOT NULL;

ALTER TABLE counterfoil.raw_record DROP CONSTRAINT raw_record_status;
ALTER TABLE counterfoil.raw_record ADD CONSTRAINT raw_record_status
    CHECK (status IN ('quarantined', 'held', 'released', 'discarded'));
"""

OPERATIONS = """
CREATE FUNCTION counterfoil.note_dead_letter() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF NEW.state = 'quarantined' THEN
        INSERT INTO counterfoil.dead_letter AS d
            (number, type, entity_hash, reason, fingerprint, first_at, at, sequence, revision, open)
        SELECT NEW.number, o.type, hashtextextended(o.entity, 0), NEW.reason, COALESCE((
                SELECT concat_ws(' ', e.detail->>'cause', e.detail->>'error_class', e.detail->>'place') FROM counterfoil.event e
                WHERE e.number = NEW.number AND e.at = NEW.updated_at AND e.kind = 'quarantined' ORDER BY e.ordinal DESC LIMIT 1
            ), ''), NEW.updated_at, NEW.updated_at, NEW.sequence, NEW.revision, true
        FROM counterfoil.operation o WHERE o.number = NEW.number
        ON CONFLICT (number) DO UPDATE SET reason = EXCLUDED.reason, fingerprint = EXCLUDED.fingerprint, at = EXCLUDED.at,
            sequence = EXCLUDED.sequence, revision = EXCLUDED.revision, open = true,
            replays = CASE WHEN EXCLUDED.revision > d.revision THEN LEAST(d.replays, 1) ELSE d.replays END;
    ELSE
        UPDATE counterfoil.dead_letter SET open = false,
            replays = replays + CASE WHEN NEW.state = 'queued' THEN 1 ELSE 0 END,
            replayed_at = CASE WHEN NEW.state = 'queued' THEN NEW.updated_at ELSE replayed_at END
        WHERE number = NEW.number;
    END IF;
    RETURN NULL;
END $$;
"""

RAW_RECORDS = """
CREATE FUNCTION counterfoil.note_raw_dead_letter() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF NEW.status = 'quarantined' THEN
        INSERT INTO counterfoil.dead_letter (raw, type, reason, fingerprint, first_at, at, open)
        VALUES (NEW.id, NEW.type, NEW.reason, NEW.topic, NEW.at, NEW.at, true)
        ON CONFLICT (raw) DO UPDATE SET reason = EXCLUDED.reason, open = true;
    ELSE
        UPDATE counterfoil.dead_letter SET open = false,
            replays = replays + CASE WHEN NEW.status = 'released' THEN 1 ELSE 0 END,
            replayed_at = CASE WHEN NEW.status = 'released' THEN counterfoil.ledger_time() ELSE replayed_at END
        WHERE raw = NEW.id AND open;
    END IF;
    RETURN NULL;
END $$;
"""

TRIGGERS = (
    """CREATE TRIGGER state_quarantined AFTER INSERT ON counterfoil.state FOR EACH ROW WHEN (NEW.state = 'quarantined')
        EXECUTE FUNCTION counterfoil.note_dead_letter()""",
    """CREATE TRIGGER state_dead_letter AFTER UPDATE OF state ON counterfoil.state FOR EACH ROW
        WHEN (OLD.state <> NEW.state AND (OLD.state = 'quarantined' OR NEW.state = 'quarantined'))
        EXECUTE FUNCTION counterfoil.note_dead_letter()""",
    """CREATE TRIGGER raw_record_quarantined AFTER INSERT ON counterfoil.raw_record FOR EACH ROW
        WHEN (NEW.status = 'quarantined') EXECUTE FUNCTION counterfoil.note_raw_dead_letter()""",
    """CREATE TRIGGER raw_record_dead_letter AFTER UPDATE OF status ON counterfoil.raw_record FOR EACH ROW
        WHEN (OLD.status <> NEW.status AND (OLD.status = 'quarantined' OR NEW.status = 'quarantined'))
        EXECUTE FUNCTION counterfoil.note_raw_dead_letter()""",
)

#: What was quarantined before this migration; the last causes are found by the events of their transitions.
BEFORE = (
    """INSERT INTO counterfoil.dead_letter (number, type, entity_hash, reason, first_at, at, sequence, revision, open)
        SELECT s.number, o.type, hashtextextended(o.entity, 0), s.reason, s.updated_at, s.updated_at, s.sequence, s.revision, true
        FROM counterfoil.state s JOIN counterfoil.operation o ON o.number = s.number
        WHERE s.state = 'quarantined' AND s.due_at IS NOT NULL
        ON CONFLICT DO NOTHING""",
    """INSERT INTO counterfoil.dead_letter (raw, type, reason, fingerprint, first_at, at, open)
        SELECT id, type, reason, topic, at, at, true FROM counterfoil.raw_record WHERE status = 'quarantined'
        ON CONFLICT DO NOTHING""",
)


def upgrade() -> None:
    for statement in filter(str.strip, TABLES.split(";\n")):
        op.execute(statement)
    op.execute(OPERATIONS)
    op.execute(RAW_RECORDS)
    for statement in (*TRIGGERS, *BEFORE):
        op.execute(statement)


def downgrade() -> None:
    raise RuntimeError("a ledger is not migrated backwards: restore a backup taken before the migration")
