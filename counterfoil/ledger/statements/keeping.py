"""Keeping N Kafka records raw, with the dead letters of those that can never be read, in one statement."""

from sqlalchemy import Interval, TextClause, bindparam, text

from counterfoil.core.roads import DEAD_LETTER
from counterfoil.ledger.arrays import column

#: The columns of one record, in the order of its row. `k_words` NULL: it is held, and gets no dead letter.
KEPT = {"k_id": "uuid", "k_reason": "text", "k_type": "text", "k_number": "int8", "k_topic": "text", "k_partition": "int4",
        "k_offset": "int8", "k_time": "timestamptz", "k_key": "bytea", "k_value": "bytea", "k_headers": "bytea",
        "k_shard": "int2", "k_words": "text"}  # fmt: skip

#: Answers how many were new. One that is there already is left as it is, and gets no second dead letter.
KEEP: TextClause = text(
    """
WITH clock AS MATERIALIZED (SELECT counterfoil.ledger_time() AS now),
asked AS MATERIALIZED (
    SELECT * FROM unnest(:k_id, :k_reason, :k_type, :k_number, :k_topic, :k_partition, :k_offset, :k_time, :k_key, :k_value,
        :k_headers, :k_shard, :k_words)
    AS a(id, reason, type, number, topic, partition, record_offset, record_time, key, value, headers, shard, words)
),
kept AS (
    INSERT INTO counterfoil.raw_record (id, status, reason, type, number, topic, partition, record_offset, record_time, key,
        value, headers, due_at, at)
    SELECT id, :k_status, reason, type, number, topic, partition, record_offset, record_time, key,
        value, headers, now + :k_due, now
    FROM asked, clock ORDER BY id
    ON CONFLICT DO NOTHING RETURNING id
),
told AS (
    INSERT INTO counterfoil.outbox (shard, kind, type, key, value, headers, created_at)
    SELECT a.shard, DEAD_LETTER, a.type, a.key, a.value, CAST(a.words AS jsonb), now
    FROM asked a JOIN kept k ON k.id = a.id CROSS JOIN clock WHERE a.words IS NOT NULL
)
SELECT count(*) FROM kept
""".replace("DEAD_LETTER", repr(DEAD_LETTER))
).bindparams(bindparam("k_due", type_=Interval()), *(column(name, element) for name, element in KEPT.items()))
