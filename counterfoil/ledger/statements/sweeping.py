"""What is due: level-triggered, by the ledger's clock, on the one partial index, and never waiting for a locked row.

`OFFSET 0` in a LATERAL subquery keeps it one look into an index for each row: joined, the plan scans the table as soon as the
statistics are stale. `+ 0` and `= ANY (ARRAY (...))`: see `moving`.
"""

from sqlalchemy import TextClause, text

from counterfoil.ledger.arrays import column

#: In the line of its entity: open, and not passed for good. Word for word the predicate of the index `state_line`.
IN_LINE = "due_at IS NOT NULL AND state <> 'succeeded'"

#: Queued and waiting operations whose due time has come, and what is known of their newest command record: noted in
#: `published` (an hour's step of the clock is allowed for; past it the note reads as lost, and a copy is harmless), and passed by
#: the group's commits. `waits`: told to wait for an operation of its Strict entity, and that one is still before it.
SEND_DUE: TextClause = text(
    """
WITH clock AS MATERIALIZED (SELECT counterfoil.ledger_time() AS now),
due AS MATERIALIZED (
    SELECT s.number, s.state, s.revision, s.generation, s.sent_at, s.sent_id, s.attempt, s.sequence,
        s.entity_id AS line, s.position
    FROM counterfoil.state s
    WHERE s.state = :d_state AND s.due_at <= (SELECT now FROM clock)
    ORDER BY s.due_at LIMIT :d_limit FOR NO KEY UPDATE SKIP LOCKED
),
known AS MATERIALIZED (
    SELECT d.*, o.operation_id, o.type, o.entity, o.traceparent, now,
        (
            SELECT r.due_at FROM (SELECT due_at, status FROM counterfoil.raw_record WHERE number = d.number OFFSET 0) r
            WHERE r.status = 'held' LIMIT 1
        ) AS held_until,
        p.record_offset, p.partition,
        d.line IS NOT NULL AND d.sent_id IS NULL AND EXISTS (
            SELECT 1 FROM counterfoil.entity e, LATERAL (
                SELECT 1 FROM counterfoil.state
                WHERE entity_id = d.line AND position >= e.head AND position < d.position AND IN_LINE LIMIT 1
            ) f WHERE e.id = d.line
        ) AS waits
    FROM due d CROSS JOIN clock
    CROSS JOIN LATERAL (
        SELECT operation_id, type, entity, traceparent FROM counterfoil.operation WHERE number = d.number OFFSET 0
    ) o
    LEFT JOIN LATERAL (
        SELECT record_offset, partition FROM counterfoil.published
        WHERE number = d.number AND outbox_id = d.sent_id AND at >= d.sent_at - interval '1 hour' LIMIT 1
    ) p ON true
)
SELECT k.number, k.operation_id, k.type, k.entity, k.revision, k.generation, k.attempt, k.traceparent, k.held_until, k.now,
    k.sent_at, k.sent_id, k.waits, k.record_offset IS NOT NULL AS noted,
    EXISTS (
        SELECT 1 FROM counterfoil.acknowledged a
        WHERE a.topic = :d_before || k.type || :d_after AND a.partition = k.partition AND a.up_to > k.record_offset
    ) AS passed
FROM known k
""".replace("IN_LINE", IN_LINE)
)

SEND = {"s_number": "int8", "s_shard": "int2", "s_id": "uuid", "s_type": "text", "s_revision": "int4", "s_generation": "int4",
        "s_key": "bytea", "s_traceparent": "text", "s_content": "bytea"}  # fmt: skip

#: The command record of operations locked by SEND_DUE, once more, with an event each; no transition.
SEND_AGAIN: TextClause = text(
    """
WITH asked AS MATERIALIZED (
    SELECT *, nextval('counterfoil.outbox_id_seq') AS outbox_id
    FROM unnest(:s_number, :s_shard, :s_id, :s_type, :s_revision, :s_generation, :s_key, :s_traceparent, :s_content)
        AS a(number, shard, id, type, revision, generation, key, traceparent, content)
),
noted AS (
    UPDATE counterfoil.state s SET
        events = s.events + 1, sent_at = :s_now, sent_id = a.outbox_id, due_at = :s_now + :s_wait,
        chain = sha256(s.chain || int8send(s.number) || int4send(s.sequence) || 'sent_again'::bytea || a.content)
    FROM asked a WHERE s.number + 0 = a.number AND s.number = ANY (ARRAY(SELECT number FROM asked))
    RETURNING s.number, s.sequence, s.events, s.state, s.attempt, s.chain
),
told AS (
    INSERT INTO counterfoil.event (number, ordinal, sequence, at, kind, state, attempt, reason, secret, content, chain)
    SELECT n.number, n.events, n.sequence, :s_now, 'sent_again', n.state, n.attempt, :s_reason, :s_secret, a.content, n.chain
    FROM noted n JOIN asked a ON a.number = n.number
)
INSERT INTO counterfoil.outbox (shard, id, kind, type, number, operation_id, revision, generation, key, traceparent, created_at)
OVERRIDING SYSTEM VALUE
SELECT a.shard, a.outbox_id, :s_kind, a.type, a.number, a.id, a.revision, a.generation, a.key, a.traceparent, :s_now
FROM asked a JOIN noted n ON n.number = a.number
"""
).bindparams(*(column(name, element) for name, element in SEND.items()))

#: Which of these outbox rows still wait to be published.
UNPUBLISHED: TextClause = text(
    """
SELECT a.number FROM unnest(:u_number, :u_shard, :u_id) AS a(number, shard, id),
    LATERAL (SELECT 1 FROM counterfoil.outbox WHERE shard = a.shard AND id = a.id OFFSET 0) o
"""
).bindparams(column("u_number", "int8"), column("u_shard", "int2"), column("u_id", "int8"))

#: Nothing is to be done yet: look again later. No transition and no event.
LOOK_LATER: TextClause = text(
    """
WITH asked AS MATERIALIZED (SELECT * FROM unnest(:p_number, :p_due) AS a(number, due_at))
UPDATE counterfoil.state s SET due_at = a.due_at
FROM asked a WHERE s.number + 0 = a.number AND s.number = ANY (ARRAY(SELECT number FROM asked))
"""
).bindparams(column("p_number", "int8"), column("p_due", "timestamptz"))

#: Running operations whose due time has come, with the lease of the session that holds them.
LEASES: TextClause = text(
    """
WITH clock AS MATERIALIZED (SELECT counterfoil.ledger_time() AS now)
SELECT s.number, s.attempt_until, w.lease_until, now, w.lease_until <= now OR w.stopped_at IS NOT NULL OR w.id IS NULL
    AS lease_over,
    s.attempt_until <= now AS time_over
FROM counterfoil.state s
CROSS JOIN LATERAL (SELECT type FROM counterfoil.operation WHERE number = s.number OFFSET 0) o
LEFT JOIN counterfoil.worker w ON w.id = s.session
CROSS JOIN clock
WHERE s.state = 'running' AND s.due_at <= (SELECT now FROM clock) AND o.type = ANY(:d_types)
ORDER BY s.due_at LIMIT :d_limit FOR NO KEY UPDATE OF s SKIP LOCKED
"""
).bindparams(column("d_types", "text"))

#: Operations of the named types that await confirmation and are due.
UNPROBED: TextClause = text(
    """
WITH clock AS MATERIALIZED (SELECT counterfoil.ledger_time() AS now)
SELECT s.number, now FROM counterfoil.state s
CROSS JOIN LATERAL (SELECT type FROM counterfoil.operation WHERE number = s.number OFFSET 0) o
CROSS JOIN clock
WHERE s.state = 'awaiting_confirmation' AND s.due_at <= (SELECT now FROM clock) AND o.type = ANY(:d_types)
ORDER BY s.due_at LIMIT :d_limit FOR NO KEY UPDATE OF s SKIP LOCKED
"""
).bindparams(column("d_types", "text"))
