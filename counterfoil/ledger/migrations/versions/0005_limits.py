"""Limits and breakers of sinks, which all workers share, and pauses. New tables only: the release before never reads them."""

from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

TABLES = """
CREATE TABLE counterfoil.sink (
    name TEXT NOT NULL,
    type TEXT DEFAULT '' NOT NULL,
    concurrency INTEGER,
    per_second DOUBLE PRECISION,
    spent_until TIMESTAMP WITH TIME ZONE,
    position TEXT DEFAULT 'closed' NOT NULL,
    failures INTEGER DEFAULT '0' NOT NULL,
    openings INTEGER DEFAULT '0' NOT NULL,
    opened_at TIMESTAMP WITH TIME ZONE,
    until TIMESTAMP WITH TIME ZONE,
    prober BIGINT,
    PRIMARY KEY (name, type),
    CONSTRAINT sink_position CHECK (position IN ('closed', 'open', 'half_open')),
    CONSTRAINT sink_open CHECK ((position = 'closed') = (opened_at IS NULL AND until IS NULL)),
    CONSTRAINT sink_prober CHECK ((position = 'half_open') = (prober IS NOT NULL)),
    CONSTRAINT sink_limits CHECK (concurrency >= 1 AND per_second > 0),
    CONSTRAINT sink_limits_set CHECK (per_second IS NULL OR concurrency IS NOT NULL)
);

CREATE TABLE counterfoil.sink_share (
    name TEXT NOT NULL,
    type TEXT NOT NULL,
    session BIGINT NOT NULL,
    slots INTEGER NOT NULL,
    in_use INTEGER NOT NULL,
    wanted INTEGER NOT NULL,
    at TIMESTAMP WITH TIME ZONE NOT NULL,
    PRIMARY KEY (name, type, session),
    CONSTRAINT sink_share_counts CHECK (slots >= 0 AND in_use >= 0 AND wanted >= in_use)
);

CREATE TABLE counterfoil.outage (
    name TEXT NOT NULL,
    opened_at TIMESTAMP WITH TIME ZONE NOT NULL,
    closed_at TIMESTAMP WITH TIME ZONE,
    PRIMARY KEY (name, opened_at),
    CONSTRAINT outage_span CHECK (closed_at >= opened_at)
);

CREATE TABLE counterfoil.pause (
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    reason TEXT NOT NULL,
    actor TEXT NOT NULL,
    at TIMESTAMP WITH TIME ZONE NOT NULL,
    until TIMESTAMP WITH TIME ZONE,
    act BIGINT NOT NULL,
    PRIMARY KEY (kind, name),
    CONSTRAINT pause_kind CHECK (kind IN ('type', 'sink')),
    CONSTRAINT pause_until CHECK (until > at)
);
"""


def upgrade() -> None:
    for statement in filter(str.strip, TABLES.split(";\n")):
        op.execute(statement)


def downgrade() -> None:
    raise RuntimeError("a ledger is not migrated backwards: restore a backup taken before the migration")
