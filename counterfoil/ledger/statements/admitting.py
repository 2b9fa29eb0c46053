"""Admitting N records' operations: lock, check and count the attempt in one statement.

Rows are locked first, in the order of their numbers and by number alone; everything else is tested outside that subquery, or
the plan becomes a nested loop over a scan as soon as statistics are a moment old. Other tables are read by `= ANY (ARRAY (...))`:
one walk through their index, whatever the statistics say, since a plan's guess at the length of such an array never grows.
"""

from sqlalchemy import TextClause, text

from counterfoil.ledger.arrays import column

CANDIDATE = {"c_number": "int8", "c_revision": "int4", "c_hash": "bytea", "c_road": "text", "c_partition": "int4",
             "c_offset": "int8", "c_detail": "text", "c_content": "bytea"}  # fmt: skip

ADMIT: TextClause = text(
    """
WITH clock AS MATERIALIZED (SELECT counterfoil.ledger_time() AS now),
session AS MATERIALIZED (
    SELECT w.lease_until FROM counterfoil.worker w,
        clock WHERE w.id = :c_session AND w.stopped_at IS NULL AND w.lease_until > now
),
asked AS MATERIALIZED (
    SELECT * FROM unnest(:c_number, :c_revision, :c_hash, :c_road, :c_partition, :c_offset, :c_detail, :c_content)
        AS a(number, asked_revision, hash, road, partition, place, detail, content)
    ORDER BY number
),
locked AS MATERIALIZED (
    SELECT a.*, s.* FROM asked a, LATERAL (
        SELECT state, sequence, attempt, tries_left, revision, generation, outcome, doubtful_since, doubtful_revision,
            doubtful_generation, unresolved, admitted_at, attempt_until, cancel_asked, accepted_risk, not_before,
            record_road, record_partition, record_offset
        FROM counterfoil.state WHERE number = a.number FOR NO KEY UPDATE
    ) s
),
named AS MATERIALIZED (
    SELECT number, operation_id, type FROM counterfoil.operation WHERE number = ANY (ARRAY(SELECT number FROM asked))
),
written AS MATERIALIZED (
    SELECT number, revision, value_hash FROM counterfoil.payload WHERE number = ANY (ARRAY(SELECT number FROM asked))
),
found AS MATERIALIZED (
    SELECT l.*, o.operation_id, o.type, COALESCE(p.value_hash = l.hash, false) AS same,
        sha256(l.content || int4send(l.attempt + 1)) AS counted
    FROM locked l
    JOIN named o ON o.number = l.number
    LEFT JOIN written p ON p.number = l.number AND p.revision = l.revision
),
admitted AS (
    UPDATE counterfoil.state s SET
        state = 'running', sequence = s.sequence + 1, events = s.events + 1, attempt = s.attempt + 1,
        tries_left = s.tries_left - 1, outcome = 'open', admitted_at = now, attempt_until = now + :c_run_time,
        session = :c_session, accepted_risk = false, not_before = NULL, sent_at = NULL, sent_id = NULL,
        due_at = LEAST(session.lease_until, now + :c_run_time),
        record_road = f.road, record_partition = f.partition, record_offset = f.place, reason = 'admitted',
        chain = sha256(s.chain || int8send(s.number) || int4send(s.sequence + 1) || 'admitted'::bytea || f.counted),
        updated_at = now
    FROM found f, clock, session
    WHERE s.number = f.number
        AND f.state IN ('queued', 'retry_wait') AND f.type = :c_type AND f.asked_revision = f.revision AND f.same
        AND (f.not_before IS NULL OR f.not_before <= now) AND f.tries_left > 0 AND NOT f.cancel_asked
        AND (f.doubtful_since IS NULL OR f.accepted_risk OR :c_guard OR (
            :c_keyed AND f.doubtful_revision = f.revision AND f.doubtful_generation = f.generation
            AND (CAST(:c_horizon AS interval) IS NULL OR now + :c_margin < f.doubtful_since + CAST(:c_horizon AS interval))))
    RETURNING s.number, s.sequence, s.events, s.attempt, s.attempt_until, s.chain, f.detail, f.counted
),
told AS (
    INSERT INTO counterfoil.event
        (number, ordinal, sequence, at, kind, state, attempt, reason, detail, secret, content, chain)
    SELECT number, events, sequence, now, 'admitted', 'running', attempt, 'admitted', CAST(detail AS jsonb), :c_secret,
        counted, chain
    FROM admitted, clock
)
SELECT f.number, f.operation_id, f.state, f.sequence, f.attempt, f.tries_left, f.revision, f.generation, f.outcome,
    f.doubtful_since, f.doubtful_revision, f.doubtful_generation, f.unresolved, f.admitted_at, f.attempt_until, f.cancel_asked,
    f.accepted_risk, f.type = :c_type AS ours, f.asked_revision = f.revision AS current, f.same,
    f.not_before IS NULL OR f.not_before <= now AS due,
    f.record_road = f.road AND f.record_partition = f.partition AND f.record_offset = f.place AS again,
    d.attempt AS number_of_attempt, d.attempt_until AS until, now, EXISTS (SELECT 1 FROM session) AS alive
FROM found f LEFT JOIN admitted d ON d.number = f.number, clock
"""
).bindparams(*(column(name, element) for name, element in CANDIDATE.items()))
