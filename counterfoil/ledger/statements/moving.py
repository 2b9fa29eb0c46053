"""Writing transitions: the locking step that a decision is taken on, and N decisions with their events and outbox rows.

Rows are found by `= ANY (ARRAY (...))`: one walk through an index, whatever the statistics say, since a plan's guess at the
length of such an array never grows. `+ 0` in the join beside it keeps the column out of an index search for each row.
"""

from sqlalchemy import DateTime, TextClause, bindparam, text

from counterfoil.ledger.arrays import column

#: What core's decisions are taken on, in the order in which `moves.standing_of` takes it.
STANDING = (
    "number", "state", "sequence", "attempt", "tries_left", "revision", "generation", "outcome", "doubtful_since",
    "doubtful_revision", "doubtful_generation", "unresolved", "admitted_at", "attempt_until", "session", "cancel_asked",
    "accepted_risk",
)  # fmt: skip

#: The locking step: sorted by number, by number alone. It answers what the decision needs and the ledger's time.
LOCK: TextClause = text(
    """
WITH asked AS MATERIALIZED (SELECT number FROM unnest(:l_number) AS a(number) ORDER BY number),
locked AS MATERIALIZED (
    SELECT a.number AS asked_number, s.* FROM asked a, LATERAL (
        SELECT * FROM counterfoil.state WHERE number = a.number FOR NO KEY UPDATE
    ) s
),
named AS MATERIALIZED (SELECT * FROM counterfoil.operation WHERE number = ANY (ARRAY(SELECT number FROM asked)))
SELECT STANDING,
    o.operation_id, o.type, o.entity, o.version, l.remote_id, o.traceparent, counterfoil.ledger_time() AS now
FROM locked l JOIN named o ON o.number = l.number
""".replace("STANDING", ", ".join(f"l.{name}" for name in STANDING))
).bindparams(column("l_number", "int8"))

MOVE = {"m_number": "int8", "m_expected": "int4", "m_state": "text", "m_kind": "text", "m_reason": "text", "m_outcome": "text",
        "m_wait": "float8", "m_delayed": "bool", "m_tries": "int4", "m_doubt": "int2", "m_risk": "bool",
        "m_attempt": "int4", "m_remote_id": "text", "m_remote_version": "text", "m_sink_time": "timestamptz",
        "m_result_key": "text", "m_detail": "text", "m_content": "bytea"}  # fmt: skip
OUT = {"o_number": "int8", "o_shard": "int2", "o_kind": "text", "o_type": "text", "o_id": "uuid", "o_revision": "int4",
       "o_key": "bytea", "o_value": "bytea", "o_headers": "text", "o_traceparent": "text"}  # fmt: skip

#: Transitions out of any state but into running. Void where the sequence is no longer the one that the decision was taken on.
WRITE: TextClause = text(
    """
WITH asked AS MATERIALIZED (
    SELECT * FROM unnest(:m_number, :m_expected, :m_state, :m_kind, :m_reason, :m_outcome, :m_wait, :m_delayed, :m_tries,
        :m_doubt, :m_risk, :m_attempt, :m_remote_id, :m_remote_version, :m_sink_time, :m_result_key, :m_detail, :m_content)
    AS a(number, expected, state, kind, reason, outcome, wait, delayed, tries, doubt, risk, attempt, remote_id, remote_version,
        sink_time, result_key, detail, content)
),
moved AS (
    UPDATE counterfoil.state s SET
        state = a.state, sequence = s.sequence + 1, events = s.events + 1, outcome = a.outcome, session = NULL,
        sent_at = NULL, sent_id = NULL,
        tries_left = s.tries_left + a.tries,
        doubtful_since = CASE WHEN a.doubt = -1 THEN NULL WHEN a.doubt IN (1, 3) THEN COALESCE(s.doubtful_since, s.admitted_at)
            ELSE s.doubtful_since END,
        doubtful_revision = CASE WHEN a.doubt = -1 THEN NULL WHEN a.doubt IN (1, 3) THEN COALESCE(s.doubtful_revision, s.revision)
            ELSE s.doubtful_revision END,
        doubtful_generation = CASE WHEN a.doubt = -1 THEN NULL
            WHEN a.doubt IN (1, 3) THEN COALESCE(s.doubtful_generation, s.generation) ELSE s.doubtful_generation END,
        unresolved = CASE WHEN a.doubt IN (-1, 2, 3) THEN false WHEN a.doubt = 1 THEN true ELSE s.unresolved END,
        accepted_risk = s.accepted_risk OR a.risk,
        not_before = CASE WHEN a.delayed THEN :m_now + a.wait * interval '1 second' END,
        due_at = :m_now + a.wait * interval '1 second',
        closed_at = CASE WHEN a.wait IS NULL THEN :m_now END,
        remote_id = COALESCE(a.remote_id, s.remote_id), remote_version = COALESCE(a.remote_version, s.remote_version),
        sink_time = COALESCE(a.sink_time, s.sink_time), result_key = COALESCE(s.result_key, a.result_key),
        reason = a.reason, updated_at = :m_now,
        chain = sha256(s.chain || int8send(s.number) || int4send(s.sequence + 1) || convert_to(a.kind, 'UTF8') || a.content)
    FROM asked a
    WHERE s.number + 0 = a.number AND s.number = ANY (ARRAY(SELECT number FROM asked)) AND s.sequence = a.expected
    RETURNING s.number, s.sequence, s.events, s.chain, a.kind, a.state, a.attempt, a.reason, a.detail, a.content,
        s.entity_id, s.position
),
told AS (
    INSERT INTO counterfoil.event
        (number, ordinal, sequence, at, kind, state, attempt, reason, detail, secret, content, chain)
    SELECT number, events, sequence, :m_now, kind, state, attempt, reason, CAST(detail AS jsonb), :m_secret, content, chain
    FROM moved
),
sent AS (
    INSERT INTO counterfoil.outbox (shard, kind, type, number, operation_id, revision, key, value, headers,
        traceparent, created_at)
    SELECT o.shard, o.kind, o.type, o.number, o.id, o.revision, o.key, o.value, CAST(o.headers AS jsonb), o.traceparent, :m_now
    FROM unnest(:o_number, :o_shard, :o_kind, :o_type, :o_id, :o_revision, :o_key, :o_value, :o_headers, :o_traceparent)
        AS o(number, shard, kind, type, id, revision, key, value, headers, traceparent)
    JOIN moved m ON m.number = o.number
)
SELECT number, entity_id, position FROM moved
"""
).bindparams(
    bindparam("m_now", type_=DateTime(timezone=True)),
    *(column(name, element) for name, element in (MOVE | OUT).items()),
)

NOTE = {"n_number": "int8", "n_kind": "text", "n_reason": "text", "n_attempt": "int4", "n_detail": "text", "n_content": "bytea",
        "n_due_now": "bool", "n_applied": "bool"}  # fmt: skip

#: Events that change no state: redelivery, copy, kept receipts and answers, a cancel that was asked for.
#: `applied` makes its attempt doubtful. One older than the latest counts as admitted just before it, under a key that no longer
#: counts: then no answer of the latest can hide it (S11). A receipt of an older revision came under that one's key.
TELL: TextClause = text(
    """
WITH clock AS MATERIALIZED (SELECT counterfoil.ledger_time() AS now),
asked AS MATERIALIZED (
    SELECT * FROM unnest(:n_number, :n_kind, :n_reason, :n_attempt, :n_detail, :n_content, :n_due_now, :n_applied)
        AS a(number, kind, reason, attempt, detail, content, due_now, applied) ORDER BY number
),
locked AS MATERIALIZED (
    SELECT a.* FROM asked a, LATERAL (SELECT 1 FROM counterfoil.state WHERE number = a.number FOR NO KEY UPDATE) s
),
noted AS (
    UPDATE counterfoil.state s SET
        events = s.events + 1, cancel_asked = s.cancel_asked OR l.kind = 'cancel_asked',
        due_at = CASE WHEN l.due_now AND s.due_at IS NOT NULL THEN LEAST(s.due_at, now) ELSE s.due_at END,
        sent_at = CASE WHEN l.due_now THEN NULL ELSE s.sent_at END,
        sent_id = CASE WHEN l.due_now THEN NULL ELSE s.sent_id END,
        not_before = CASE WHEN l.due_now THEN NULL ELSE s.not_before END,
        doubtful_since = CASE WHEN l.applied THEN COALESCE(s.doubtful_since,
            s.admitted_at - CASE WHEN l.attempt < s.attempt THEN interval '1 microsecond' ELSE interval '0' END, now)
            ELSE s.doubtful_since END,
        doubtful_revision = CASE WHEN l.applied THEN COALESCE(s.doubtful_revision,
            CASE WHEN l.attempt < s.attempt OR l.reason = 'old_revision' THEN 0 ELSE s.revision END) ELSE s.doubtful_revision END,
        doubtful_generation = CASE WHEN l.applied THEN COALESCE(s.doubtful_generation, s.generation)
            ELSE s.doubtful_generation END,
        chain = sha256(s.chain || int8send(s.number) || int4send(s.sequence) || convert_to(l.kind, 'UTF8') || l.content)
    FROM locked l, clock WHERE s.number + 0 = l.number AND s.number = ANY (ARRAY(SELECT number FROM asked))
    RETURNING s.number, s.sequence, s.events, s.state, s.chain, l.kind, l.attempt, l.reason, l.detail, l.content
)
INSERT INTO counterfoil.event (number, ordinal, sequence, at, kind, state, attempt, reason, detail, secret, content, chain)
SELECT number, events, sequence, now, kind, state, attempt, reason, CAST(detail AS jsonb), :n_secret, content, chain
FROM noted, clock
"""
).bindparams(*(column(name, element) for name, element in NOTE.items()))
