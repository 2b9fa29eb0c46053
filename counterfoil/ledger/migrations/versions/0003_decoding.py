"""A row for each partition that names the records being decoded; held records by their age."""

from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

TABLE = """
CREATE TABLE counterfoil.decoding (
    topic TEXT NOT NULL,
    partition INTEGER NOT NULL,
    epoch INTEGER NOT NULL DEFAULT 0,
    session BIGINT NOT NULL DEFAULT 0,
    first_offset BIGINT,
    last_offset BIGINT,
    suspect_first BIGINT,
    suspect_last BIGINT,
    died_together BIGINT,
    named_offset BIGINT,
    died_alone BIGINT[] NOT NULL DEFAULT '{}',
    PRIMARY KEY (topic, partition),
    CONSTRAINT decoding_range CHECK ((first_offset IS NULL) = (last_offset IS NULL) AND first_offset <= last_offset),
    CONSTRAINT decoding_suspects CHECK ((suspect_first IS NULL) = (suspect_last IS NULL) AND suspect_first <= suspect_last)
) WITH (fillfactor = 20)
"""


def upgrade() -> None:
    op.execute(TABLE)
    op.execute("CREATE INDEX raw_record_held ON counterfoil.raw_record (at, id) WHERE status = 'held'")


def downgrade() -> None:
    raise RuntimeError("a ledger is not migrated backwards: restore a backup taken before the migration")
