"""Order per entity: an entity's row, the numbers of its operations, and their place in it.

Safe while the release before runs: what it writes has no entity, and is run without an order, as before.
"""

from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

# Each may run again: making the indexes commits what came before it, and the run may be interrupted there.
TABLES = """
CREATE TABLE IF NOT EXISTS counterfoil.entity (
    id UUID NOT NULL,
    head BIGINT,
    newest BIGINT,
    PRIMARY KEY (id)
);
CREATE TABLE IF NOT EXISTS counterfoil.entity_tail (
    entity UUID NOT NULL,
    taken BIGINT DEFAULT '0' NOT NULL,
    PRIMARY KEY (entity)
);
ALTER TABLE counterfoil.state ADD COLUMN IF NOT EXISTS entity_id UUID, ADD COLUMN IF NOT EXISTS position BIGINT;
ALTER TABLE counterfoil.state DROP CONSTRAINT IF EXISTS state_place;
ALTER TABLE counterfoil.state ADD CONSTRAINT state_place CHECK ((entity_id IS NULL) = (position IS NULL)) NOT VALID
"""

# Made beside running workers: an index that is made in a transaction would hold all of them up for as long as it reads the table.
INDEXES = {
    "state_line": "(entity_id, position) WHERE entity_id IS NOT NULL AND due_at IS NOT NULL AND state <> 'succeeded'",
    "state_entity_doubt": "(entity_id, position) WHERE entity_id IS NOT NULL AND doubtful_since IS NOT NULL",
}


def upgrade() -> None:
    for statement in TABLES.split(";\n"):
        op.execute(statement)
    with op.get_context().autocommit_block():
        for name, what in INDEXES.items():
            op.execute(f"DROP INDEX CONCURRENTLY IF EXISTS counterfoil.{name}")  # what an interrupted run left
            op.execute(f"CREATE INDEX CONCURRENTLY {name} ON counterfoil.state {what}")


def downgrade() -> None:
    raise RuntimeError("a ledger is not migrated backwards: restore a backup taken before the migration")
