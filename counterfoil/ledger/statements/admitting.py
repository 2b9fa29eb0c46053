"""Admitting N records' operations: lock, check and count the attempt in one statement.

For a type with an order the entities are locked by a statement of its own before it (`ordering.HOLD`), and what they say is
checked here: the same as core's `Turn.free`. The statement of an unordered type knows nothing of entities.

Rows are locked first, in the order of their numbers and by number alone; everything else is tested outside that subquery, or
the plan becomes a nested loop over a scan as soon as statistics are a moment old. Other tables are read by `= ANY (ARRAY (...))`:
one walk through their index, whatever the statistics say, since a plan's guess at the length of such an array never grows.
"""

from collections.abc import Mapping

from sqlalchemy import Interval, TextClause, bindparam, text

from counterfoil.core.order import Ordering
from counterfoil.ledger.arrays import column
from counterfoil.ledger.statements.ordering import HOLDS
from counterfoil.ledger.statements.sweeping import IN_LINE

CANDIDATE = {"c_number": "int8", "c_revision": "int4", "c_hash": "bytea", "c_road": "text", "c_partition": "int4",
             "c_offset": "int8", "c_detail": "text", "c_content": "bytea"}  # fmt: skip

_ADMIT = """
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
            record_road, record_partition, record_offset@PLACE
        FROM counterfoil.state WHERE number = a.number FOR NO KEY UPDATE
    ) s
),
named AS MATERIALIZED (
    SELECT number, operation_id, type FROM counterfoil.operation WHERE number = ANY (ARRAY(SELECT number FROM asked))
),
written AS MATERIALIZED (
    SELECT number, revision, value_hash FROM counterfoil.payload WHERE number = ANY (ARRAY(SELECT number FROM asked))
),
@FOUND AS MATERIALIZED (
    SELECT l.*, o.operation_id, o.type, COALESCE(p.value_hash = l.hash, false) AS same,
        sha256(l.content || int4send(l.attempt + 1)) AS counted
    FROM locked l
    JOIN named o ON o.number = l.number
    LEFT JOIN written p ON p.number = l.number AND p.revision = l.revision
),@TURN
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
            AND (CAST(:c_horizon AS interval) IS NULL OR now + :c_margin < f.doubtful_since + CAST(:c_horizon AS interval))))@FREE
    RETURNING s.number, s.sequence, s.events, s.attempt, s.attempt_until, s.chain, f.detail, f.counted@LINE
),@RAISED
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
    d.attempt AS number_of_attempt, d.attempt_until AS until, now, EXISTS (SELECT 1 FROM session) AS alive@SAID
FROM found f LEFT JOIN admitted d ON d.number = f.number, clock
"""

#: A request of an operation that is over may still be applied up to then: of one before it, under a doubt that was never settled.
_LANDED = """(
        SELECT max(attempt_until) + :c_absence FROM counterfoil.state
        WHERE entity_id = f.line AND position < f.position AND doubtful_since IS NOT NULL AND @OVER
    ) AS landed"""
_STRICT = """
found AS MATERIALIZED (
    SELECT f.*, f.position < e.head AS passed, false AS newer, (
        SELECT number FROM counterfoil.state
        WHERE entity_id = f.line AND position >= e.head AND position < f.position AND @IN_LINE
        ORDER BY position LIMIT 1
    ) AS behind, @LANDED
    FROM alone f LEFT JOIN LATERAL (SELECT head FROM counterfoil.entity WHERE id = f.line OFFSET 0) e ON true
),"""
_LATEST = """
found AS MATERIALIZED (
    SELECT f.*, COALESCE(e.newest > f.position, false) AS passed, EXISTS (
        SELECT 1 FROM counterfoil.state WHERE entity_id = f.line AND position > f.position AND @IN_LINE
            AND state IN ('queued', 'retry_wait') AND NOT cancel_asked AND (not_before IS NULL OR not_before <= now)
    ) AS newer, (
        SELECT number FROM counterfoil.state WHERE entity_id = f.line AND position < f.position AND @IN_LINE AND @HOLDS
        ORDER BY position DESC LIMIT 1
    ) AS behind, @LANDED
    FROM alone f CROSS JOIN clock
    LEFT JOIN LATERAL (SELECT newest FROM counterfoil.entity WHERE id = f.line OFFSET 0) e ON true
),"""
_FREE = """
        AND (f.line IS NULL OR (NOT f.passed AND (NOT f.newer OR f.doubtful_since IS NOT NULL) AND (@GUARD f.behind IS NULL)
            AND (:c_guard OR f.landed IS NULL OR f.landed <= now)))"""
_RAISED = """
raised AS (
    UPDATE counterfoil.entity e SET newest = a.newest
    FROM (SELECT line, max(position) AS newest FROM admitted WHERE line IS NOT NULL GROUP BY line) a
    WHERE e.id = a.line AND e.id = ANY (ARRAY(SELECT line FROM admitted)) AND (e.newest IS NULL OR e.newest < a.newest)
),"""
_ORDERED = {
    "@PLACE": ",\n            entity_id AS line, position",
    "@FOUND": "alone",
    "@FREE": _FREE,
    "@LINE": ", s.entity_id AS line, s.position",
    "@SAID": ",\n    f.line, f.position, f.passed, f.newer, f.behind, f.landed",
}
#: What stands for each mark, in this order: one may hold another.
_MARKS = ("@PLACE", "@FOUND", "@TURN", "@FREE", "@LINE", "@RAISED", "@SAID", "@GUARD", "@LANDED", "@OVER", "@HOLDS", "@IN_LINE")
_PARTS: Mapping[Ordering, Mapping[str, str]] = {
    Ordering.UNORDERED: {"@FOUND": "found"},
    Ordering.STRICT: {**_ORDERED, "@TURN": _STRICT, "@LANDED": _LANDED, "@OVER": "position < e.head", "@IN_LINE": IN_LINE},
    Ordering.LATEST_WINS: {
        **_ORDERED,
        "@TURN": _LATEST,
        "@RAISED": _RAISED,
        "@GUARD": ":c_guard OR",
        "@LANDED": _LANDED,
        "@OVER": "NOT @HOLDS",
        "@HOLDS": HOLDS,
        "@IN_LINE": IN_LINE,
    },
}


def _admit(ordering: Ordering) -> TextClause:
    words = _ADMIT
    for mark in _MARKS:
        words = words.replace(mark, _PARTS[ordering].get(mark, ""))
    clause = text(words).bindparams(*(column(name, element) for name, element in CANDIDATE.items()))
    return clause if ordering is Ordering.UNORDERED else clause.bindparams(bindparam("c_absence", type_=Interval()))


#: The statement of each order.
ADMIT: Mapping[Ordering, TextClause] = {ordering: _admit(ordering) for ordering in Ordering}
