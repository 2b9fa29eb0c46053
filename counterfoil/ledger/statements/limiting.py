"""Limits, breakers and pauses: a few small rows, read and written at the pace of a heartbeat, never for a record."""

from typing import Any

from sqlalchemy import Select, TextClause, bindparam, func, or_, select, text

from counterfoil.ledger.arrays import column
from counterfoil.ledger.tables import instant, ledger_time, worker
from counterfoil.ledger.tables_limits import outage, pause, sink, sink_share

#: A sink's own row has no type.
KEY = {"k_name": "text", "k_type": "text"}
_KEYS = [column(name, element) for name, element in KEY.items()]

#: Rows for sinks that were never seen.
ENSURE: TextClause = text(
    """
INSERT INTO counterfoil.sink (name, type) SELECT * FROM unnest(:k_name, :k_type) ON CONFLICT DO NOTHING
"""
).bindparams(*_KEYS)

#: Shares of sessions that are gone for good.
FORGET_DEAD: TextClause = text(
    """
DELETE FROM counterfoil.sink_share h USING counterfoil.worker w
WHERE w.id = h.session AND (w.stopped_at IS NOT NULL OR w.lease_until <= counterfoil.ledger_time())
"""
)

#: The locking step, in the order of the keys; each row with the ledger's time after it was locked.
LOCK_SINKS: TextClause = text(
    """
WITH asked AS MATERIALIZED (SELECT * FROM unnest(:k_name, :k_type) AS a(name, type) ORDER BY name, type)
SELECT s.*, counterfoil.ledger_time() AS now FROM asked a, LATERAL (
    SELECT * FROM counterfoil.sink WHERE name = a.name AND type = a.type FOR NO KEY UPDATE
) s
"""
).bindparams(*_KEYS)

#: The shares of living sessions.
SHARES: TextClause = text(
    """
SELECT h.name, h.type, h.session, h.slots, h.in_use, h.wanted
FROM counterfoil.sink_share h JOIN counterfoil.worker w ON w.id = h.session
WHERE (h.name, h.type) IN (SELECT * FROM unnest(:k_name, :k_type))
    AND (h.session = :k_session OR (w.stopped_at IS NULL AND w.lease_until > counterfoil.ledger_time()))
"""
).bindparams(*_KEYS)

SINK = {**KEY, "k_spent_until": "timestamptz", "k_position": "text", "k_failures": "int4", "k_openings": "int4",
        "k_opened_at": "timestamptz", "k_until": "timestamptz", "k_prober": "int8"}  # fmt: skip
KEEP_SINKS: TextClause = text(
    """
UPDATE counterfoil.sink s SET spent_until = k.spent_until, position = k.position, failures = k.failures, openings = k.openings,
    opened_at = k.opened_at, until = k.until, prober = k.prober
FROM unnest(:k_name, :k_type, :k_spent_until, :k_position, :k_failures, :k_openings, :k_opened_at, :k_until, :k_prober)
    AS k(name, type, spent_until, position, failures, openings, opened_at, until, prober)
WHERE s.name = k.name AND s.type = k.type
"""
).bindparams(*(column(name, element) for name, element in SINK.items()))

SHARE = {**KEY, "k_slots": "int4", "k_in_use": "int4", "k_wanted": "int4"}
KEEP_SHARES: TextClause = text(
    """
INSERT INTO counterfoil.sink_share (name, type, session, slots, in_use, wanted, at)
SELECT k.name, k.type, :k_session, k.slots, k.in_use, k.wanted, counterfoil.ledger_time()
FROM unnest(:k_name, :k_type, :k_slots, :k_in_use, :k_wanted) AS k(name, type, slots, in_use, wanted)
ON CONFLICT (name, type, session) DO UPDATE
    SET slots = EXCLUDED.slots, in_use = EXCLUDED.in_use, wanted = EXCLUDED.wanted, at = EXCLUDED.at
"""
).bindparams(*(column(name, element) for name, element in SHARE.items()))

BEGIN_OUTAGE: TextClause = text(
    "INSERT INTO counterfoil.outage (name, opened_at) VALUES (:name, :opened_at) ON CONFLICT DO NOTHING"
).bindparams(bindparam("opened_at", type_=instant))
END_OUTAGE: TextClause = text(
    "UPDATE counterfoil.outage SET closed_at = :closed_at WHERE name = :name AND closed_at IS NULL"
).bindparams(bindparam("closed_at", type_=instant))

#: For how long a sink's breaker was open since an instant.
OPEN_TIME: TextClause = text(
    """
SELECT COALESCE(sum(COALESCE(closed_at, counterfoil.ledger_time()) - GREATEST(opened_at, :since)), interval '0')
FROM counterfoil.outage WHERE name = :name AND COALESCE(closed_at, counterfoil.ledger_time()) > :since
"""
).bindparams(bindparam("since", type_=instant))

#: One pause, locked; `over` where it has ended by itself.
LOCK_PAUSE: TextClause = text(
    """
SELECT act, COALESCE(until <= counterfoil.ledger_time(), false) AS over
FROM counterfoil.pause WHERE kind = :kind AND name = :name FOR UPDATE
"""
)
PAUSE: TextClause = text(
    """
INSERT INTO counterfoil.pause AS p (kind, name, reason, actor, at, until, act)
SELECT :kind, :name, :reason, session_user, now, now + make_interval(secs => CAST(:seconds AS float8)), :act
FROM (SELECT counterfoil.ledger_time() AS now) clock
ON CONFLICT (kind, name) DO UPDATE
    SET reason = EXCLUDED.reason, actor = EXCLUDED.actor, at = EXCLUDED.at, until = EXCLUDED.until, act = EXCLUDED.act
RETURNING p.*
"""
)
RESUME: TextClause = text("DELETE FROM counterfoil.pause WHERE kind = :kind AND name = :name")

ENSURE_ONE: TextClause = text("INSERT INTO counterfoil.sink (name) VALUES (:name) ON CONFLICT DO NOTHING")
LOCK_LIMITS: TextClause = text(
    "SELECT concurrency, per_second FROM counterfoil.sink WHERE name = :name AND type = '' FOR NO KEY UPDATE"
)
SET_LIMITS: TextClause = text(
    """
UPDATE counterfoil.sink SET concurrency = CAST(:concurrency AS integer), per_second = CAST(:per_second AS float8)
WHERE name = :name AND type = ''
"""
)


def lasting() -> Select[Any]:
    """The pauses that hold now."""
    return select(pause).where(or_(pause.c.until.is_(None), pause.c.until > ledger_time))


def sinks() -> Select[Any]:
    """Every sink that a worker ever asked for, with what is in flight there and how many living workers share it."""
    share = (
        select(
            sink_share.c.name,
            sink_share.c.type,
            func.sum(sink_share.c.in_use).label("in_flight"),
            func.sum(sink_share.c.wanted).label("wanted"),
            func.count().label("workers"),
        )
        .join(worker, worker.c.id == sink_share.c.session)
        .where(worker.c.stopped_at.is_(None), worker.c.lease_until > ledger_time)
        .group_by(sink_share.c.name, sink_share.c.type)
        .subquery()
    )
    counted = [func.coalesce(share.c[name], 0).label(name) for name in ("in_flight", "wanted", "workers")]
    joined = sink.outerjoin(share, (share.c.name == sink.c.name) & (share.c.type == sink.c.type))
    return select(sink, *counted, ledger_time.label("now")).select_from(joined).order_by(sink.c.name, sink.c.type)


def outages(name: str, limit: int) -> Select[Any]:
    """The newest first."""
    return (
        select(outage.c.opened_at, outage.c.closed_at)
        .where(outage.c.name == name)
        .order_by(outage.c.opened_at.desc())
        .limit(limit)
    )


def shares(name: str) -> Select[Any]:
    """Which living workers share a sink."""
    return (
        select(worker.c.id, worker.c.name, sink_share.c.type, sink_share.c.slots, sink_share.c.in_use, sink_share.c.wanted)
        .join(worker, worker.c.id == sink_share.c.session)
        .where(sink_share.c.name == name, worker.c.stopped_at.is_(None), worker.c.lease_until > ledger_time)
        .order_by(sink_share.c.type, worker.c.id)
    )
