"""Order per entity: locking an entity, moving its head, and finding what comes free.

Locks are taken in one order everywhere: the tails of entities (callers alone), state rows by number, entity rows by id. Under an
entity's lock no state row of another operation is waited for (SKIP LOCKED), or two that hold one each would deadlock.
Every reading under the lock is a statement of its own: it sees what the one who held the lock before has committed.
"""

from sqlalchemy import TextClause, text

from counterfoil.ledger.arrays import column
from counterfoil.ledger.statements.sweeping import IN_LINE, SEND

#: A LatestWins version of which nobody knows yet whether it is applied (core: `holds_entity`).
HOLDS = """(state = 'running' OR (doubtful_since IS NOT NULL
            AND state IN ('queued', 'retry_wait', 'awaiting_confirmation', 'manual_review', 'quarantined')))"""

#: Locks state rows in the order of their numbers, then their entities in the order of their ids.
HOLD: TextClause = text(
    """
WITH asked AS MATERIALIZED (SELECT number FROM unnest(:l_number) AS a(number) ORDER BY number),
locked AS MATERIALIZED (
    SELECT s.entity_id FROM asked a, LATERAL (
        SELECT entity_id FROM counterfoil.state WHERE number = a.number FOR NO KEY UPDATE
    ) s
),
lines AS MATERIALIZED (SELECT DISTINCT entity_id AS entity FROM locked WHERE entity_id IS NOT NULL ORDER BY entity)
SELECT 1 FROM lines l, LATERAL (SELECT 1 FROM counterfoil.entity WHERE id = l.entity FOR NO KEY UPDATE) e
"""
).bindparams(column("l_number", "int8"))

#: Locks entities in the order of their ids, by whoever has the state rows already.
LOCK_LINES: TextClause = text(
    """
WITH lines AS MATERIALIZED (SELECT entity FROM unnest(:w_entity) AS a(entity) ORDER BY entity)
SELECT 1 FROM lines l, LATERAL (SELECT 1 FROM counterfoil.entity WHERE id = l.entity FOR NO KEY UPDATE) e
"""
).bindparams(column("w_entity", "uuid"))

#: Strict: the head goes to the first operation that is still in line, else past the last one that is over. It never goes back.
MOVE_HEADS: TextClause = text(
    """
WITH asked AS MATERIALIZED (SELECT entity, top FROM unnest(:h_entity, :h_top) AS a(entity, top)),
lines AS MATERIALIZED (
    SELECT a.entity, a.top, e.head FROM asked a, LATERAL (
        SELECT head FROM counterfoil.entity WHERE id = a.entity OFFSET 0
    ) e WHERE e.head IS NOT NULL
),
moved AS MATERIALIZED (
    SELECT l.entity, l.head, COALESCE(f.position, l.top + 1) AS ahead FROM lines l LEFT JOIN LATERAL (
        SELECT position FROM counterfoil.state WHERE entity_id = l.entity AND position >= l.head AND IN_LINE
        ORDER BY position LIMIT 1
    ) f ON true
)
UPDATE counterfoil.entity e SET head = m.ahead
FROM moved m WHERE e.id = m.entity AND e.id = ANY (ARRAY(SELECT entity FROM moved)) AND e.head < m.ahead
""".replace("IN_LINE", IN_LINE)
).bindparams(column("h_entity", "uuid"), column("h_top", "int8"))

#: The operation of each entity that comes next: of a Strict one the first in line; of a LatestWins one the newest that was told
#: to wait. `free`: its row was not locked by somebody else, and now is by us.
NEXT: TextClause = text(
    """
WITH clock AS MATERIALIZED (SELECT counterfoil.ledger_time() AS now),
lines AS MATERIALIZED (
    SELECT a.entity, e.head FROM unnest(:w_entity) AS a(entity), LATERAL (
        SELECT head FROM counterfoil.entity WHERE id = a.entity OFFSET 0
    ) e
),
first AS MATERIALIZED (
    SELECT f.* FROM lines l, LATERAL (
        SELECT number, state, revision, generation, attempt, sent_id, due_at, not_before FROM counterfoil.state
        WHERE entity_id = l.entity AND position >= l.head AND IN_LINE ORDER BY position LIMIT 1
    ) f WHERE l.head IS NOT NULL
    UNION ALL
    SELECT f.* FROM lines l, LATERAL (
        SELECT number, state, revision, generation, attempt, sent_id, due_at, not_before FROM counterfoil.state
        WHERE entity_id = l.entity AND IN_LINE AND state IN ('queued', 'retry_wait') AND sent_id IS NULL
            AND (not_before IS NULL OR not_before <= (SELECT now FROM clock))
        ORDER BY position DESC LIMIT 1
    ) f WHERE l.head IS NULL
)
SELECT f.number, f.state, f.revision, f.generation, f.attempt, f.sent_id IS NULL AS told, f.due_at, o.operation_id, o.type,
    o.entity, o.traceparent, now, mine.number IS NOT NULL AS free
FROM first f CROSS JOIN clock
CROSS JOIN LATERAL (
    SELECT operation_id, type, entity, traceparent FROM counterfoil.operation WHERE number = f.number OFFSET 0
) o
LEFT JOIN LATERAL (
    SELECT number FROM counterfoil.state WHERE number = f.number FOR NO KEY UPDATE SKIP LOCKED
) mine ON true
WHERE f.state IN ('queued', 'retry_wait') AND (f.not_before IS NULL OR f.not_before <= now)
    AND NOT f.number = ANY (:w_moved)
    AND NOT EXISTS (
        SELECT 1 FROM (SELECT status FROM counterfoil.raw_record WHERE number = f.number OFFSET 0) r WHERE r.status = 'held'
    )
""".replace("IN_LINE", IN_LINE)
).bindparams(column("w_entity", "uuid"), column("w_moved", "int8"))

#: The rows of SEND that somebody else has locked: their command record goes out, and nothing is noted of it. A copy is harmless.
SEND_ONLY: TextClause = text(
    """
INSERT INTO counterfoil.outbox (shard, kind, type, number, operation_id, revision, generation, key, traceparent, created_at)
SELECT shard, :s_kind, type, number, id, revision, generation, key, traceparent, :s_now
FROM unnest(:s_number, :s_shard, :s_id, :s_type, :s_revision, :s_generation, :s_key, :s_traceparent)
    AS a(number, shard, id, type, revision, generation, key, traceparent)
"""
).bindparams(*(column(name, element) for name, element in SEND.items() if name != "s_content"))

#: LatestWins: older versions that were told to wait, or wait for a retry, and of which none may have been applied.
OLDER: TextClause = text(
    """
SELECT f.number FROM unnest(:v_entity, :v_version) AS a(entity, version), LATERAL (
    SELECT number FROM counterfoil.state
    WHERE entity_id = a.entity AND position < a.version AND IN_LINE AND state IN ('queued', 'retry_wait')
        AND sent_id IS NULL AND doubtful_since IS NULL
    ORDER BY position LIMIT 100 FOR NO KEY UPDATE SKIP LOCKED
) f
""".replace("IN_LINE", IN_LINE)
).bindparams(column("v_entity", "uuid"), column("v_version", "int8"))

#: Told to wait: no record of it is under way, and whoever frees the entity sends one. Looked at by its due time all the same.
TELL_TO_WAIT: TextClause = text(
    """
WITH asked AS MATERIALIZED (SELECT * FROM unnest(:p_number, :p_due) AS a(number, due_at))
UPDATE counterfoil.state s SET due_at = a.due_at, sent_at = NULL, sent_id = NULL
FROM asked a WHERE s.number + 0 = a.number AND s.number = ANY (ARRAY(SELECT number FROM asked))
"""
).bindparams(column("p_number", "int8"), column("p_due", "timestamptz"))

#: Where one operation stands in its entity, for people. Counts stop at `p_most`; nothing is locked.
PLACE: TextClause = text(
    """
SELECT e.head IS NOT NULL AS strict, s.position, f.operation_id AS behind, f.state AS behind_state, (
        SELECT count(*) FROM (
            SELECT 1 FROM counterfoil.state WHERE entity_id = s.entity_id AND position >= e.head AND position < s.position
                AND IN_LINE LIMIT :p_most
        ) b
    ) AS before, (
        SELECT count(*) FROM (
            SELECT 1 FROM counterfoil.state WHERE entity_id = s.entity_id AND position > s.position AND IN_LINE
                AND (e.head IS NOT NULL OR (sent_id IS NULL AND state IN ('queued', 'retry_wait'))) LIMIT :p_most
        ) w
    ) AS waiting
FROM counterfoil.state s, LATERAL (SELECT head FROM counterfoil.entity WHERE id = s.entity_id) e
LEFT JOIN LATERAL (
    (SELECT number, state FROM counterfoil.state WHERE entity_id = s.entity_id AND position >= e.head AND position < s.position
        AND IN_LINE ORDER BY position LIMIT 1)
    UNION ALL
    (SELECT number, state FROM counterfoil.state WHERE e.head IS NULL AND s.sent_id IS NULL AND entity_id = s.entity_id
        AND position < s.position AND IN_LINE AND HOLDS ORDER BY position DESC LIMIT 1)
) first ON true
LEFT JOIN LATERAL (SELECT o.operation_id, first.state FROM counterfoil.operation o WHERE o.number = first.number) f ON true
WHERE s.number = :p_number AND s.due_at IS NOT NULL AND s.state <> 'succeeded'
""".replace("IN_LINE", IN_LINE).replace("HOLDS", HOLDS)
)
