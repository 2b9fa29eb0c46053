"""Accepting operations: operation, payload, state, event and outbox row of N operations in one statement."""

from sqlalchemy import TextClause, text

from counterfoil.core.roads import COMMAND
from counterfoil.ledger.arrays import column

#: The columns of one accepted operation, in the order of its row.
ACCEPTED = {
    "e_id": "uuid",
    "e_entity": "text",
    "e_version": "text",
    "e_digest": "bytea",
    "e_value": "bytea",
    "e_hash": "bytea",
    "e_content": "bytea",
    "e_shard": "int2",
    "e_key": "bytea",
}

#: An outbox row's id, taken after the lock on its operation's row and without CACHE: per operation they are in order.
NEXT_ID = "nextval('counterfoil.outbox_id_seq')"

_ACCEPT = """
WITH clock AS MATERIALIZED (SELECT counterfoil.ledger_time() AS now),
asked AS MATERIALIZED (
    SELECT * FROM unnest(:e_id, :e_entity, :e_version, :e_digest, :e_value, :e_hash, :e_content, :e_shard, :e_key)
        AS a(id, entity, version, digest, value, hash, content, shard, key)
),
new AS (
    INSERT INTO counterfoil.operation
        (operation_id, type, entity, version, digest, digest_secret, correlation_id, traceparent, created_at)
    SELECT id, :e_type, entity, version, digest, :e_secret, CAST(:e_correlation AS text), CAST(:e_traceparent AS text), now
    FROM asked, clock
    ON CONFLICT (operation_id) DO NOTHING
    RETURNING number, operation_id
),
accepted AS MATERIALIZED (
    SELECT new.number, NEXT_ID AS outbox_id, asked.* FROM new JOIN asked ON asked.id = new.operation_id
),
saved AS (
    INSERT INTO counterfoil.payload (number, revision, value, value_hash, created_at)
    SELECT number, 1, value, hash, now FROM accepted, clock
),
standing AS (
    INSERT INTO counterfoil.state
        (number, state, tries_left, not_before, sent_at, sent_id, due_at, reason, chain, updated_at)
    SELECT number, :e_state, :e_tries, CAST(:e_not_before AS timestamptz), :e_sent * now, outbox_id,
        COALESCE(CAST(:e_not_before AS timestamptz), now + :e_due), 'accepted',
        sha256(int8send(number) || int4send(0) || 'accepted'::bytea || content), now
    FROM accepted, clock
    RETURNING number, chain
),
told AS (
    INSERT INTO counterfoil.event (number, ordinal, sequence, at, kind, state, attempt, reason, secret, content, chain)
    SELECT number, 1, 0, now, 'accepted', :e_state, 0, 'accepted', :e_secret, content,
        sha256(int8send(number) || int4send(0) || 'accepted'::bytea || content)
    FROM accepted, clock
)SENT
SELECT id FROM asked WHERE NOT EXISTS (SELECT 1 FROM new WHERE operation_id = id)
"""

_SENT = """,
sent AS (
    INSERT INTO counterfoil.outbox (shard, id, kind, type, number, operation_id, revision, key, traceparent, created_at)
    OVERRIDING SYSTEM VALUE
    SELECT shard, outbox_id, COMMAND, :e_type, number, id, 1, key, CAST(:e_traceparent AS text), now FROM accepted, clock
)""".replace("COMMAND", repr(COMMAND))


def accept(*, sent: bool) -> TextClause:
    """Writes new operations and answers the ids of those that were there before. `sent`: with a command record."""
    words = _ACCEPT.replace("SENT", _SENT if sent else "").replace("NEXT_ID", NEXT_ID if sent else "CAST(NULL AS bigint)")
    words = words.replace(":e_sent * now", "now" if sent else "CAST(NULL AS timestamptz)")
    return text(words).bindparams(*(column(name, element) for name, element in ACCEPTED.items()))


#: What the ledger holds of operations that were there before: the digests of all their revisions' first content and who they are.
THERE = text(
    """
    WITH asked AS MATERIALIZED (SELECT * FROM unnest(:e_id, :e_hash) AS a(id, hash)),
    held AS MATERIALIZED (
        SELECT number, operation_id, digest, digest_secret, type FROM counterfoil.operation
        WHERE operation_id = ANY (ARRAY(SELECT id FROM asked))
    )
    SELECT h.operation_id, h.digest, h.digest_secret, h.type, p.same_bytes
    FROM held h JOIN asked a ON a.id = h.operation_id,
        LATERAL (SELECT COALESCE(bool_or(value_hash = a.hash), false) AS same_bytes
            FROM counterfoil.payload WHERE number = h.number) p
    """
).bindparams(column("e_id", "uuid"), column("e_hash", "bytea"))
