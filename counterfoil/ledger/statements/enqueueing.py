"""Accepting operations: operation, payload, state, event and outbox row of N operations in one statement.

Of a type with an order also their place in the entity: the version, or (Strict) the next numbers, taken from the entity's tail,
which a statement before this one has locked until the caller's commit. The statement of an unordered type knows no entities.
"""

from sqlalchemy import TextClause, text

from counterfoil.core.order import Ordering
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

#: The further columns of an operation of an ordered type. `e_place`: which in the caller's own order.
PLACED = {"e_line": "uuid", "e_version_number": "int8", "e_place": "int4"}

#: An outbox row's id, taken after the lock on its operation's row and without CACHE: per operation they are in order.
NEXT_ID = "nextval('counterfoil.outbox_id_seq')"

_ACCEPT = """
WITH clock AS MATERIALIZED (SELECT counterfoil.ledger_time() AS now),
asked AS MATERIALIZED (
    SELECT * FROM unnest(:e_id, :e_entity, :e_version, :e_digest, :e_value, :e_hash, :e_content, :e_shard, :e_key@ASKED)
        AS a(id, entity, version, digest, value, hash, content, shard, key@NAMED)
),
new AS (
    INSERT INTO counterfoil.operation
        (operation_id, type, entity, version, digest, digest_secret, correlation_id, traceparent, created_at)
    SELECT id, :e_type, entity, version, digest, :e_secret, CAST(:e_correlation AS text), CAST(:e_traceparent AS text), now
    FROM asked, clock
    ON CONFLICT (operation_id) DO NOTHING
    RETURNING number, operation_id
),
@ACCEPTED AS MATERIALIZED (
    SELECT new.number, NEXT_ID AS outbox_id, asked.*@POSITION FROM new JOIN asked ON asked.id = new.operation_id
),@NUMBERED
saved AS (
    INSERT INTO counterfoil.payload (number, revision, value, value_hash, created_at)
    SELECT number, 1, value, hash, now FROM accepted, clock
),
standing AS (
    INSERT INTO counterfoil.state
        (number, state, tries_left, not_before, sent_at, sent_id, due_at, reason, chain, updated_at@COLUMNS)
    SELECT number, :e_state, :e_tries, CAST(:e_not_before AS timestamptz), :e_sent * now, outbox_id,
        COALESCE(CAST(:e_not_before AS timestamptz), now + :e_due), 'accepted',
        sha256(int8send(number) || int4send(0) || 'accepted'::bytea || content), now@VALUES
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


#: Strict: the next numbers of each entity, in the caller's order. The first operation of an entity makes its row.
_NUMBERED = """
counted AS MATERIALIZED (SELECT line, count(*) AS many FROM written GROUP BY line),
taken AS (
    UPDATE counterfoil.entity_tail t SET taken = t.taken + c.many
    FROM counted c WHERE t.entity = c.line AND t.entity = ANY (ARRAY(SELECT line FROM counted))
    RETURNING t.entity, t.taken - c.many AS before
),
accepted AS MATERIALIZED (
    SELECT w.*, t.before + row_number() OVER (PARTITION BY w.line ORDER BY w.place) AS position
    FROM written w JOIN taken t ON t.entity = w.line
),
begun AS (
    INSERT INTO counterfoil.entity (id, head) SELECT line, 1 FROM accepted WHERE position = 1 ON CONFLICT (id) DO NOTHING
),"""
#: LatestWins: the version is the place; only callers that make one entity at the same time wait for each other.
_BEGUN = """
begun AS (
    INSERT INTO counterfoil.entity (id) SELECT line FROM (SELECT DISTINCT line FROM accepted ORDER BY line) l
    ON CONFLICT (id) DO NOTHING
),"""
_PLACED = {
    "@ASKED": "".join(f", :{name}" for name in PLACED),
    "@NAMED": ", line, version_number, place",
    "@COLUMNS": ", entity_id, position",
    "@VALUES": ", line, position",
}
_PARTS = {
    Ordering.UNORDERED: {"@ACCEPTED": "accepted"},
    Ordering.STRICT: {**_PLACED, "@ACCEPTED": "written", "@NUMBERED": _NUMBERED},
    Ordering.LATEST_WINS: {
        **_PLACED,
        "@ACCEPTED": "accepted",
        "@POSITION": ", asked.version_number AS position",
        "@NUMBERED": _BEGUN,
    },
}
_MARKS = ("@ASKED", "@NAMED", "@ACCEPTED", "@POSITION", "@NUMBERED", "@COLUMNS", "@VALUES")


def accept(ordering: Ordering, *, sent: bool) -> TextClause:
    """Writes new operations and answers the ids of those that were there before. `sent`: with a command record."""
    words = _ACCEPT.replace("SENT", _SENT if sent else "").replace("NEXT_ID", NEXT_ID if sent else "CAST(NULL AS bigint)")
    words = words.replace(":e_sent * now", "now" if sent else "CAST(NULL AS timestamptz)")
    for mark in _MARKS:
        words = words.replace(mark, _PARTS[ordering].get(mark, ""))
    asked = ACCEPTED if ordering is Ordering.UNORDERED else ACCEPTED | PLACED
    return text(words).bindparams(*(column(name, element) for name, element in asked.items()))


#: Strict: locks the tails of these entities in the order of their ids, to the end of the caller's transaction.
LOCK_TAILS: TextClause = text(
    """
INSERT INTO counterfoil.entity_tail AS t (entity) SELECT entity FROM unnest(:e_line) AS a(entity) ORDER BY entity
ON CONFLICT (entity) DO UPDATE SET taken = t.taken
"""
).bindparams(column("e_line", "uuid"))

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
