"""Held records: which a live worker can do, which are past their deadline, and letting them go. One statement for N of them.

A record that is let go is not published again: its operation becomes due, and sends its own bytes, which are the record's. Rows
that another process holds are passed over; operations are locked in the order of their numbers. `+ 0` and `= ANY (ARRAY (...))`:
see `moving`.
"""

from sqlalchemy import TextClause, text

from counterfoil.ledger.arrays import column

#: Types with the schema ids that live workers read, and since when. `mixed`: another live worker of the type does not.
_CAPABLE = """live AS MATERIALIZED (
    SELECT c.key AS type, CAST(c.value AS integer) AS schema_id, w.started_at
    FROM counterfoil.worker w, LATERAL jsonb_each_text(CASE jsonb_typeof(w.capable) WHEN 'object' THEN w.capable ELSE '{}' END) c
    WHERE w.stopped_at IS NULL AND w.lease_until > (SELECT now FROM clock) AND w.role = 'worker'
),
capable AS MATERIALIZED (
    SELECT type, schema_id, max(started_at) AS registered,
        EXISTS (SELECT FROM live o WHERE o.type = l.type AND o.schema_id <> l.schema_id) AS mixed
    FROM live l GROUP BY type, schema_id
)"""

#: Where workers differ, a record is let go once for each that registers after it was held: its partition may be an older one's.
_PICKED = """chosen AS MATERIALIZED (
    SELECT r.id, r.number FROM capable c, LATERAL (
        SELECT id, number FROM counterfoil.raw_record
        WHERE status = 'held' AND number IS NOT NULL AND type = c.type
            AND counterfoil.frame_schema(value) = c.schema_id AND (NOT c.mixed OR at < c.registered)
        ORDER BY at LIMIT :h_limit FOR NO KEY UPDATE SKIP LOCKED
    ) r LIMIT :h_limit
)"""
_NAMED = """chosen AS MATERIALIZED (
    SELECT r.id, r.number FROM unnest(:h_id) AS a(id), LATERAL (
        SELECT id, number FROM counterfoil.raw_record WHERE id = a.id AND status = 'held' AND number IS NOT NULL
        FOR NO KEY UPDATE SKIP LOCKED
    ) r
)"""

#: Answers the causes that were let go. An operation that does not wait any more needs nothing of its record.
_LET_GO = """
WITH clock AS MATERIALIZED (SELECT counterfoil.ledger_time() AS now),
{chosen},
gone AS (
    UPDATE counterfoil.raw_record SET status = 'released' WHERE id = ANY (ARRAY(SELECT id FROM chosen))
    RETURNING id, type, reason
),
locked AS MATERIALIZED (
    SELECT s.* FROM (SELECT DISTINCT number FROM chosen ORDER BY number) n, LATERAL (
        SELECT number, state, not_before FROM counterfoil.state WHERE number = n.number FOR NO KEY UPDATE
    ) s
),
due AS (
    UPDATE counterfoil.state s SET due_at = LEAST(s.due_at, GREATEST(now, l.not_before)) FROM locked l, clock
    WHERE s.number + 0 = l.number AND s.number = ANY (ARRAY(SELECT number FROM locked)) AND l.state IN ('queued', 'retry_wait')
)
SELECT id, type, reason FROM gone
"""
RELEASE_CAPABLE: TextClause = text(_LET_GO.format(chosen=f"{_CAPABLE},\n{_PICKED}"))
RELEASE_NAMED: TextClause = text(_LET_GO.format(chosen=_NAMED)).bindparams(column("h_id", "uuid"))

#: Held records of operations whose deadline has come. Where an operation may have reached its sink, only a process that has its
#: type can say what becomes of it.
OVER: TextClause = text(
    """
WITH clock AS MATERIALIZED (SELECT counterfoil.ledger_time() AS now)
SELECT r.id, r.number, r.reason FROM counterfoil.raw_record r
WHERE r.status = 'held' AND r.number IS NOT NULL AND r.due_at <= (SELECT now FROM clock)
    AND (r.type = ANY(:h_types) OR NOT COALESCE((
        SELECT s.doubtful_since IS NOT NULL OR s.unresolved FROM counterfoil.state s WHERE s.number = r.number), false))
ORDER BY r.due_at LIMIT :h_limit FOR NO KEY UPDATE OF r SKIP LOCKED
"""
).bindparams(column("h_types", "text"))

#: Their hold is over; one whose operation the ledger has not stays, as a record without one.
END: TextClause = text(
    """
UPDATE counterfoil.raw_record SET status = CASE WHEN id = ANY(:h_unknown) THEN 'held' ELSE 'over' END,
    number = CASE WHEN id = ANY(:h_unknown) THEN NULL ELSE number END
WHERE id = ANY (ARRAY(SELECT unnest(:h_id)))
"""
).bindparams(column("h_id", "uuid"), column("h_unknown", "uuid"))
