"""Held records are found by what could do them, by their deadline, and where they name no operation.

Indexes over held records alone, which are few. The release before this one writes and reads them as before.
"""

from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

#: The schema id that a framed value begins with; NULL where it begins with no frame.
FRAME = """
CREATE FUNCTION counterfoil.frame_schema(value bytea) RETURNS integer LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN octet_length(f) = 5 AND get_byte(f, 0) = 0
        THEN (get_byte(f, 1) << 24) | (get_byte(f, 2) << 16) | (get_byte(f, 3) << 8) | get_byte(f, 4) END
    FROM (SELECT substring(value FROM 1 FOR 5)) AS one(f)
$$
"""

TABLES = """
ALTER TABLE counterfoil.raw_record DROP CONSTRAINT raw_record_status;
ALTER TABLE counterfoil.raw_record ADD CONSTRAINT raw_record_status
    CHECK (status IN ('quarantined', 'held', 'released', 'over', 'discarded'));
CREATE INDEX raw_record_capable ON counterfoil.raw_record (type, counterfoil.frame_schema(value), at)
    WHERE status = 'held' AND number IS NOT NULL;
CREATE STATISTICS counterfoil.raw_record_frame ON (counterfoil.frame_schema(value)) FROM counterfoil.raw_record;
CREATE INDEX raw_record_deadline ON counterfoil.raw_record (due_at) WHERE status = 'held' AND number IS NOT NULL;
CREATE INDEX raw_record_unnamed ON counterfoil.raw_record (at, id) WHERE status = 'held' AND number IS NULL;
CREATE INDEX worker_live ON counterfoil.worker (lease_until) WHERE stopped_at IS NULL
"""


def upgrade() -> None:
    op.execute(FRAME)
    for statement in filter(str.strip, TABLES.split(";\n")):
        op.execute(statement)


def downgrade() -> None:
    raise RuntimeError("a ledger is not migrated backwards: restore a backup taken before the migration")
