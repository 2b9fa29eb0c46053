"""Statements of a plan's run: taking its next items, letting operations run again, and what has come back.

One statement for N operations; each is conditional on the sequence that was frozen, so nothing is let run twice.
"""

from sqlalchemy import DateTime, Interval, TextClause, bindparam, text

from counterfoil.ledger.arrays import column
from counterfoil.ledger.statements.moving import LOCK

#: The next items of a plan that nobody else is at. Held to the end of the transaction.
TAKE: TextClause = text(
    """
SELECT i.position, i.dead_letter, i.number, i.raw, i.sequence, d.revision, d.replays
FROM counterfoil.plan_item i JOIN counterfoil.dead_letter d ON d.id = i.dead_letter
WHERE i.plan = :plan AND i.status = 'waiting' ORDER BY i.position LIMIT :limit FOR NO KEY UPDATE OF i SKIP LOCKED
"""
)

#: A part of a plan, in order, for a preview: read, not taken.
PEEK: TextClause = text(
    """
SELECT i.position, i.dead_letter, i.number, i.raw, i.sequence, d.revision, d.replays
FROM counterfoil.plan_item i JOIN counterfoil.dead_letter d ON d.id = i.dead_letter
WHERE i.plan = :plan AND i.position > :after AND i.status = 'waiting' ORDER BY i.position LIMIT :limit
"""
)

SETTLE = {"i_position": "int8", "i_status": "text", "i_reason": "text"}
#: What became of the items that were taken.
SETTLED: TextClause = text(
    """
WITH asked AS MATERIALIZED (SELECT * FROM unnest(:i_position, :i_status, :i_reason) AS a(position, status, reason))
UPDATE counterfoil.plan_item i SET status = a.status, reason = a.reason, at = counterfoil.ledger_time()
FROM asked a WHERE i.plan = :plan AND i.position = a.position
"""
).bindparams(*(column(name, element) for name, element in SETTLE.items()))

REPLAY = {"r_number": "int8", "r_expected": "int4", "r_grant": "int4", "r_raise": "int4", "r_shard": "int2", "r_id": "uuid",
          "r_type": "text", "r_key": "bytea", "r_traceparent": "text", "r_detail": "text", "r_content": "bytea"}  # fmt: skip

#: Out of quarantine into queued, with new tries, an event and the command record in the outbox. Void where the sequence is no
#: longer the one that was decided on. The record's topic follows from the operation's type alone.
RUN_AGAIN: TextClause = text(
    """
WITH asked AS MATERIALIZED (
    SELECT *, nextval('counterfoil.outbox_id_seq') AS outbox_id
    FROM unnest(:r_number, :r_expected, :r_grant, :r_raise, :r_shard, :r_id, :r_type, :r_key, :r_traceparent, :r_detail,
        :r_content)
        AS a(number, expected, granted, raised, shard, id, type, key, traceparent, detail, content)
),
moved AS (
    UPDATE counterfoil.state s SET
        state = 'queued', sequence = s.sequence + 1, events = s.events + 1, session = NULL, not_before = NULL,
        tries_left = s.tries_left + a.granted, generation = s.generation + a.raised,
        sent_at = :r_now, sent_id = a.outbox_id, due_at = :r_now + :r_wait, closed_at = NULL, reason = 'replayed',
        updated_at = :r_now,
        chain = sha256(s.chain || int8send(s.number) || int4send(s.sequence + 1) || 'replayed'::bytea || a.content)
    FROM asked a
    WHERE s.number + 0 = a.number AND s.number = ANY (ARRAY(SELECT number FROM asked)) AND s.sequence = a.expected
        AND s.state = 'quarantined'
    RETURNING s.number, s.sequence, s.events, s.attempt, s.revision, s.generation, s.chain
),
told AS (
    INSERT INTO counterfoil.event
        (number, ordinal, sequence, at, kind, state, attempt, reason, detail, secret, content, chain)
    SELECT m.number, m.events, m.sequence, :r_now, 'replayed', 'queued', m.attempt, 'replayed', CAST(a.detail AS jsonb),
        :r_secret, a.content, m.chain
    FROM moved m JOIN asked a ON a.number = m.number
),
sent AS (
    INSERT INTO counterfoil.outbox
        (shard, id, kind, type, number, operation_id, revision, generation, key, traceparent, created_at)
    OVERRIDING SYSTEM VALUE
    SELECT a.shard, a.outbox_id, 'command', a.type, a.number, a.id, m.revision, m.generation, a.key, a.traceparent, :r_now
    FROM moved m JOIN asked a ON a.number = m.number
)
SELECT number FROM moved
"""
).bindparams(
    bindparam("r_now", type_=DateTime(timezone=True)),
    bindparam("r_wait", type_=Interval()),
    *(column(name, element) for name, element in REPLAY.items()),
)

#: How far a plan is, by what its items came to.
PROGRESS: TextClause = text(
    """
SELECT count(*) FILTER (WHERE status = 'waiting') AS waiting, count(*) FILTER (WHERE status = 'done') AS done,
    count(*) FILTER (WHERE status = 'refused') AS refused
FROM counterfoil.plan_item WHERE plan = :plan
"""
)
REFUSALS: TextClause = text(
    """
SELECT reason, count(*) FROM counterfoil.plan_item WHERE plan = :plan AND status = 'refused' GROUP BY reason ORDER BY 2 DESC, 1
"""
)

#: What became of the first operations that a plan let run.
CANARY: TextClause = text(
    """
SELECT count(*) FILTER (WHERE s.state IN ('queued', 'running', 'retry_wait')) AS under_way,
    count(*) FILTER (WHERE s.state IN ('quarantined', 'manual_review', 'awaiting_confirmation')
        AND s.updated_at >= :since) AS failed
FROM counterfoil.plan_item i JOIN counterfoil.state s ON s.number = i.number
WHERE i.plan = :plan AND i.status = 'done' AND i.number IS NOT NULL
"""
).bindparams(bindparam("since", type_=DateTime(timezone=True)))

#: How many of a plan's operations have come back since: by what is new among dead letters, however large the plan is.
FAILED: TextClause = text(
    """
SELECT count(*) FROM counterfoil.dead_letter d
WHERE d.open AND d.at >= :since AND EXISTS (
    SELECT FROM counterfoil.plan_item i WHERE i.number = d.number AND i.status <> 'waiting' AND i.plan = :plan
        AND i.status = 'done' AND i.at <= d.at
)
"""
).bindparams(bindparam("since", type_=DateTime(timezone=True)))

#: What a decision is taken on, without a lock.
LOOK: TextClause = text(LOCK.text.replace("FOR NO KEY UPDATE", "")).bindparams(column("l_number", "int8"))
