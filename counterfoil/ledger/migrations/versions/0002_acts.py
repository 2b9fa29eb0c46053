"""Acts say what they are about, and have a chain that can be verified. No release before this one wrote any."""

from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

STATEMENTS = (
    "ALTER TABLE counterfoil.act ALTER COLUMN id DROP IDENTITY",
    """ALTER TABLE counterfoil.act
        ADD COLUMN subject TEXT NOT NULL DEFAULT '',
        ADD COLUMN detail JSONB,
        ADD COLUMN secret SMALLINT NOT NULL DEFAULT 1,
        ADD COLUMN content BYTEA NOT NULL DEFAULT ''""",
    "CREATE INDEX act_number ON counterfoil.act (number) WHERE number IS NOT NULL",
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)


def downgrade() -> None:
    raise RuntimeError("a ledger is not migrated backwards: restore a backup taken before the migration")
