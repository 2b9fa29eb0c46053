"""The tables of what sinks may be asked for and of what is paused, as SQLAlchemy Core: small ones, beside those of `tables`.

They hold no statement and no rule; the rules are core's `breaker`, `shares` and `tokens`.
"""

from sqlalchemy import BigInteger, CheckConstraint, Column, Double, Integer, Table, Text

from counterfoil.ledger.tables import instant, metadata

#: What all workers share of a sink: its limits, how far its rate is spent, its breaker. A row with a `type` is for a type that is
#: held to less than its sink (`tightened`).
sink = Table(
    "sink",
    metadata,
    Column("name", Text, primary_key=True),
    Column("type", Text, primary_key=True, server_default=""),
    Column("concurrency", Integer),  # calls in flight, set by a person; NULL: both limits are as declared
    Column("per_second", Double),  # calls a second, set by a person with `concurrency`; NULL beside it: not limited
    Column("spent_until", instant),  # up to where the rate is spent
    Column("position", Text, nullable=False, server_default="closed"),  # of the breaker
    Column("failures", Integer, nullable=False, server_default="0"),  # operations that failed in a row, on all workers
    Column("openings", Integer, nullable=False, server_default="0"),  # failed probes, the opening included
    Column("opened_at", instant),  # since when nothing is sent
    Column("until", instant),  # when it may be probed; half open: when the probe counts as lost
    Column("prober", BigInteger),  # the session whose call probes
    CheckConstraint("position IN ('closed', 'open', 'half_open')", name="sink_position"),
    CheckConstraint("(position = 'closed') = (opened_at IS NULL AND until IS NULL)", name="sink_open"),
    CheckConstraint("(position = 'half_open') = (prober IS NOT NULL)", name="sink_prober"),
    CheckConstraint("concurrency >= 1 AND per_second > 0", name="sink_limits"),
    CheckConstraint("per_second IS NULL OR concurrency IS NOT NULL", name="sink_limits_set"),
)

#: How many calls each worker session may have in flight at a sink, and how many it had when it last said so. A share counts as
#: long as its session's lease runs.
sink_share = Table(
    "sink_share",
    metadata,
    Column("name", Text, primary_key=True),
    Column("type", Text, primary_key=True),
    Column("session", BigInteger, primary_key=True, autoincrement=False),
    Column("slots", Integer, nullable=False),
    Column("in_use", Integer, nullable=False),
    Column("wanted", Integer, nullable=False),  # calls that it would make if it could, those in flight included
    Column("at", instant, nullable=False),
    CheckConstraint("slots >= 0 AND in_use >= 0 AND wanted >= in_use", name="sink_share_counts"),
)

#: When a sink's breaker was open: time that counts for no deadline.
outage = Table(
    "outage",
    metadata,
    Column("name", Text, primary_key=True),
    Column("opened_at", instant, primary_key=True),
    Column("closed_at", instant),  # NULL: it is open
    CheckConstraint("closed_at >= opened_at", name="outage_span"),
)

#: Types and sinks that a person has paused. A row past its `until` says nothing any more.
pause = Table(
    "pause",
    metadata,
    Column("kind", Text, primary_key=True),  # "type" or "sink"
    Column("name", Text, primary_key=True),
    Column("reason", Text, nullable=False),
    Column("actor", Text, nullable=False),  # the database login
    Column("at", instant, nullable=False),
    Column("until", instant),  # NULL: until somebody resumes it
    Column("act", BigInteger, nullable=False),
    CheckConstraint("kind IN ('type', 'sink')", name="pause_kind"),
    CheckConstraint("until > at", name="pause_until"),
)
