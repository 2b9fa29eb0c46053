"""Held records: which a live worker can do, which are past their deadline, and letting them go. One statement for N of them.

A record that is let go is not published again: its operation becomes due, and sends its own bytes, which are the record's. Rows
that another process holds are passed over; operations are locked in the order of their numbers. `+ 0` and `= ANY (ARRAY (...))`:
see `moving`.
"""

from sqlalchemy import Interval, TextClause, bindparam, text

from counterfoil.core.roads import DEAD_LETTER
from counterfoil.ledger.arrays import column

#: Types with the schema ids that live workers read, and since when.
_LIVE = """live AS MATERIALIZED (
    SELECT c.key AS type, CAST(c.value AS integer) AS schema_id, w.started_at
    FROM counterfoil.worker w, LATERAL jsonb_each_text(CASE jsonb_typeof(w.capable) WHEN 'object' THEN w.capable ELSE '{}' END) c
    WHERE w.stopped_at IS NULL AND w.lease_until > (SELECT now FROM clock) AND w.role = 'worker'
)"""

#: `mixed`: another live worker of the type does not read it. Then a record is let go once for each worker that registers after it
#: was held: its partition may be an older one's.
_PICKED = """capable AS MATERIALIZED (
    SELECT type, schema_id, max(started_at) AS registered,
        EXISTS (SELECT FROM live o WHERE o.type = l.type AND o.schema_id <> l.schema_id) AS mixed
    FROM live l GROUP BY type, schema_id
),
chosen AS MATERIALIZED (
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

#: Makes operations due that wait, and not before their own time.
_DUE = """locked AS MATERIALIZED (
    SELECT s.* FROM (SELECT DISTINCT number FROM chosen ORDER BY number) n, LATERAL (
        SELECT number, state, not_before FROM counterfoil.state WHERE number = n.number FOR NO KEY UPDATE
    ) s
),
due AS (
    UPDATE counterfoil.state s SET due_at = LEAST(s.due_at, GREATEST(now, l.not_before)) FROM locked l, clock
    WHERE s.number + 0 = l.number AND s.number = ANY (ARRAY(SELECT number FROM locked)) AND l.state IN ('queued', 'retry_wait')
)"""

#: Answers what was let go, and whether a live worker can do it. An operation that does not wait any more needs nothing of it.
_LET_GO = """
WITH clock AS MATERIALIZED (SELECT counterfoil.ledger_time() AS now),
@LIVE,
@CHOSEN,
gone AS (
    UPDATE counterfoil.raw_record SET status = 'released' WHERE id = ANY (ARRAY(SELECT id FROM chosen))
    RETURNING id, type, reason, counterfoil.frame_schema(value) AS schema_id
),
@DUE
SELECT id, type, reason, EXISTS (SELECT FROM live l WHERE l.type = gone.type AND l.schema_id = gone.schema_id) FROM gone
"""


def _let_go(chosen: str) -> TextClause:
    return text(_LET_GO.replace("@LIVE", _LIVE).replace("@CHOSEN", chosen).replace("@DUE", _DUE))


RELEASE_CAPABLE: TextClause = _let_go(_PICKED)
RELEASE_NAMED: TextClause = _let_go(_NAMED).bindparams(column("h_id", "uuid"))

#: Whether a live worker says that it can do one record.
CAPABLE: TextClause = text(
    """
WITH clock AS MATERIALIZED (SELECT counterfoil.ledger_time() AS now),
@LIVE
SELECT EXISTS (
    SELECT FROM counterfoil.raw_record r JOIN live l ON l.type = r.type AND l.schema_id = counterfoil.frame_schema(r.value)
    WHERE r.id = :h_cause
)
""".replace("@LIVE", _LIVE)
)

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

#: Held records without an operation, and the operation_id that the headers of each claim. One whose operation has turned up, with
#: these bytes in one of its revisions, becomes a record of it: let go where only the operation was missing, else held for it.
ADOPT: TextClause = text(
    """
WITH clock AS MATERIALIZED (SELECT counterfoil.ledger_time() AS now),
there AS MATERIALIZED (
    SELECT a.id, o.number, o.type FROM unnest(:h_id, :h_operation) AS a(id, operation_id), LATERAL (
        SELECT number, type FROM counterfoil.operation WHERE operation_id = a.operation_id OFFSET 0
    ) o
),
found AS MATERIALIZED (
    SELECT r.id, r.type, t.number, r.reason, r.type = t.type AND EXISTS (
        SELECT FROM counterfoil.payload p WHERE p.number = t.number AND p.value_hash = sha256(r.value)
    ) AS own
    FROM there t, LATERAL (
        SELECT id, type, reason, value FROM counterfoil.raw_record WHERE id = t.id AND status = 'held' AND number IS NULL
        FOR NO KEY UPDATE SKIP LOCKED
    ) r
),
taken AS (
    UPDATE counterfoil.raw_record r SET number = f.number,
        status = CASE r.reason WHEN 'unknown_operation_record' THEN 'released' ELSE 'held' END
    FROM found f WHERE r.id = f.id AND f.own AND r.id = ANY (ARRAY(SELECT id FROM found))
),
chosen AS (SELECT number FROM found WHERE own AND reason = 'unknown_operation_record'),
@DUE
SELECT id, type, reason, own FROM found
""".replace("@DUE", _DUE)
).bindparams(column("h_id", "uuid"), column("h_operation", "uuid"))

GIVEN_UP = {"g_id": "uuid", "g_shard": "int2", "g_words": "text"}
#: Held records whose operation has other bytes: quarantined, with their dead letters. No byte of them leaves the database here.
GIVE_UP: TextClause = text(
    """
WITH clock AS MATERIALIZED (SELECT counterfoil.ledger_time() AS now),
asked AS MATERIALIZED (SELECT * FROM unnest(:g_id, :g_shard, :g_words) AS a(id, shard, words)),
gone AS (
    UPDATE counterfoil.raw_record r SET status = 'quarantined', reason = :g_reason, due_at = now + :g_due
    FROM clock WHERE r.id = ANY (ARRAY(SELECT id FROM asked)) AND r.status = 'held'
    RETURNING r.id, r.type, r.key, r.value
),
told AS (
    INSERT INTO counterfoil.outbox (shard, kind, type, key, value, headers, created_at)
    SELECT a.shard, DEAD_LETTER, g.type, g.key, g.value, CAST(a.words AS jsonb), now
    FROM gone g JOIN asked a ON a.id = g.id CROSS JOIN clock
)
SELECT id FROM gone
""".replace("DEAD_LETTER", repr(DEAD_LETTER))
).bindparams(bindparam("g_due", type_=Interval()), *(column(name, element) for name, element in GIVEN_UP.items()))
