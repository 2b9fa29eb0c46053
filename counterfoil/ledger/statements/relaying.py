"""The relay's statements: who publishes which shard, what waits there, and the note of what has left.

Rows are found by (shard, id) one by one and deleted by their place in the table, so that no statistics, however stale, turn a
statement into a scan of the outbox.
"""

from sqlalchemy import TextClause, text

from counterfoil.core.roads import TO_WORKERS
from counterfoil.ledger.arrays import column

#: Relays whose session is alive.
LIVE: TextClause = text(
    """
SELECT count(*) FROM counterfoil.worker WHERE role = 'relay' AND stopped_at IS NULL AND lease_until > counterfoil.ledger_time()
"""
)

#: The shards that this session still owns. One delivery time-out after the lease they are free for another.
RENEW: TextClause = text(
    """
UPDATE counterfoil.shard SET
    lease_until = counterfoil.ledger_time() + :w_lease, free_from = counterfoil.ledger_time() + :w_lease + :w_silence
WHERE owner = :w_session
RETURNING shard, epoch
"""
)

#: At most so many shards that nobody may still be sending for; the epoch rises, and older notes fail from here on.
CLAIM: TextClause = text(
    """
UPDATE counterfoil.shard s SET owner = :w_session, epoch = s.epoch + 1,
    lease_until = counterfoil.ledger_time() + :w_lease, free_from = counterfoil.ledger_time() + :w_lease + :w_silence
FROM (
    SELECT shard FROM counterfoil.shard
    WHERE owner IS DISTINCT FROM :w_session AND (free_from IS NULL OR free_from <= counterfoil.ledger_time())
    ORDER BY shard LIMIT :w_count FOR UPDATE SKIP LOCKED
) free
WHERE s.shard = free.shard
RETURNING s.shard, s.epoch
"""
)

#: Gives shards back. With `w_silence` zero they are free at once: every report of theirs is known.
RELEASE: TextClause = text(
    """
UPDATE counterfoil.shard SET owner = NULL, lease_until = NULL, free_from = counterfoil.ledger_time() + :w_silence
WHERE owner = :w_session AND shard = ANY(:w_shard)
"""
).bindparams(column("w_shard", "int2"))

#: The same process under a new session goes on with the shards that nobody has taken over.
ADOPT: TextClause = text("UPDATE counterfoil.shard SET owner = :w_session WHERE owner = :w_before")

#: What waits above each shard's floor, oldest first: at most `r_share` rows a shard, `r_limit` rows and about `r_budget` bytes.
#: The sizes are read without reading the values, and a command's value is its revision of the payload.
READ: TextClause = text(
    """
SELECT shard, id, kind, type, number, operation_id, revision, generation, key, value, headers, traceparent, size FROM (
    SELECT t.*, sum(t.size) OVER (ROWS UNBOUNDED PRECEDING) AS bytes FROM (
        SELECT f.*, 500 + COALESCE(octet_length(f.value), 0) + COALESCE(octet_length(f.key), 0) AS size
        FROM unnest(:r_shard, :r_floor) AS a(shard, floor), LATERAL (
            SELECT o.shard, o.id, o.kind, o.type, o.number, CAST(o.operation_id AS text) AS operation_id, o.revision,
                o.generation, o.key, CAST(o.headers AS text) AS headers, o.traceparent,
                CASE WHEN o.kind IN (TO_WORKERS)
                    THEN (SELECT p.value FROM counterfoil.payload p WHERE p.number = o.number AND p.revision = o.revision)
                    ELSE o.value END AS value
            FROM counterfoil.outbox o
            WHERE o.shard = a.shard AND o.id > a.floor AND o.id <> ALL(:r_busy)
                AND (cardinality(:r_blocked) = 0
                    OR CASE WHEN o.kind IN (TO_WORKERS) THEN o.kind || '.' || o.type ELSE o.kind END
                        <> ALL(:r_blocked))
            ORDER BY o.id LIMIT :r_share
        ) f
        LIMIT :r_limit
    ) t
) w
WHERE bytes - size < :r_budget
""".replace("TO_WORKERS", ", ".join(map(repr, TO_WORKERS)))
).bindparams(column("r_shard", "int2"), column("r_floor", "int8"), column("r_busy", "int8"), column("r_blocked", "text"))

NOTED = {"p_shard": "int2", "p_id": "int8", "p_epoch": "int4", "p_partition": "int4", "p_offset": "int8"}

#: The note of N delivery reports: out of the outbox, into `published`, where the shard is still ours in that epoch.
NOTE: TextClause = text(
    """
WITH asked AS MATERIALIZED (
    SELECT * FROM unnest(:p_shard, :p_id, :p_epoch, :p_partition, :p_offset) AS a(shard, id, epoch, partition, record_offset)
),
found AS MATERIALIZED (
    SELECT o.place FROM asked a JOIN counterfoil.shard s ON s.shard = a.shard AND s.epoch = a.epoch AND s.owner = :p_session,
        LATERAL (SELECT ctid AS place FROM counterfoil.outbox WHERE shard = a.shard AND id = a.id OFFSET 0) o
),
gone AS (
    DELETE FROM counterfoil.outbox WHERE ctid = ANY(ARRAY(SELECT place FROM found)) RETURNING id, number, kind
)
INSERT INTO counterfoil.published (number, outbox_id, kind, partition, record_offset, at)
SELECT g.number, g.id, g.kind, a.partition, a.record_offset, (SELECT counterfoil.ledger_time())
FROM gone g JOIN asked a ON a.id = g.id
"""
).bindparams(*(column(name, element) for name, element in NOTED.items()))

REFUSED = {"p_shard": "int2", "p_id": "int8", "p_epoch": "int4", "p_reason": "text", "p_size": "int4"}

#: Rows that can never be sent: out of the outbox, into `refused`, under the same guard.
REFUSE: TextClause = text(
    """
WITH asked AS MATERIALIZED (
    SELECT * FROM unnest(:p_shard, :p_id, :p_epoch, :p_reason, :p_size) AS a(shard, id, epoch, reason, size)
),
found AS MATERIALIZED (
    SELECT o.place FROM asked a JOIN counterfoil.shard s ON s.shard = a.shard AND s.epoch = a.epoch AND s.owner = :p_session,
        LATERAL (SELECT ctid AS place FROM counterfoil.outbox WHERE shard = a.shard AND id = a.id OFFSET 0) o
),
gone AS (
    DELETE FROM counterfoil.outbox WHERE ctid = ANY(ARRAY(SELECT place FROM found))
    RETURNING id, kind, type, number, operation_id, revision, key, value, headers, traceparent, created_at
)
INSERT INTO counterfoil.refused
    (outbox_id, kind, type, number, operation_id, revision, key, value, headers, traceparent, created_at, reason, size, at)
SELECT g.id, g.kind, g.type, g.number, g.operation_id, g.revision, g.key, g.value, g.headers, g.traceparent, g.created_at,
    a.reason, a.size, counterfoil.ledger_time()
FROM gone g JOIN asked a ON a.id = g.id
RETURNING outbox_id, kind, type, number, revision, reason
"""
).bindparams(*(column(name, element) for name, element in REFUSED.items()))

#: Seconds since the oldest row that waits was written; NULL where none does.
OLDEST: TextClause = text(
    """
SELECT CAST(EXTRACT(epoch FROM counterfoil.ledger_time() - min(f.created_at)) AS float8)
FROM unnest(:r_shard) AS a(shard),
    LATERAL (SELECT o.created_at FROM counterfoil.outbox o WHERE o.shard = a.shard ORDER BY o.id LIMIT 1) f
"""
).bindparams(column("r_shard", "int2"))

#: Notes of offset commits past their time, but for the highest of each partition: from one partition to the next through the
#: index, and of each only the lowest, which are the oldest (where a topic was made again older ones wait for those).
DROP_ACKNOWLEDGED: TextClause = text(
    """
WITH RECURSIVE place AS (
    (SELECT topic, partition FROM counterfoil.acknowledged ORDER BY topic, partition LIMIT 1)
    UNION ALL
    SELECT n.topic, n.partition FROM place p CROSS JOIN LATERAL (
        SELECT topic, partition FROM counterfoil.acknowledged
        WHERE (topic, partition) > (p.topic, p.partition) ORDER BY topic, partition LIMIT 1
    ) n
),
old AS MATERIALIZED (
    SELECT a.place FROM place p CROSS JOIN LATERAL (
        SELECT max(up_to) AS up_to FROM counterfoil.acknowledged WHERE topic = p.topic AND partition = p.partition
    ) newest CROSS JOIN LATERAL (
        SELECT ctid AS place, at FROM counterfoil.acknowledged
        WHERE topic = p.topic AND partition = p.partition AND up_to < newest.up_to
        ORDER BY up_to LIMIT :k_limit
    ) a
    WHERE a.at < (SELECT counterfoil.ledger_time() - CAST(:k_kept AS interval))
    LIMIT :k_limit
)
DELETE FROM counterfoil.acknowledged WHERE ctid = ANY (ARRAY(SELECT place FROM old))
"""
)
