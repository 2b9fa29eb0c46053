"""The marks of what is being decoded: a narrow row a partition, which the worker that has the partition writes before each batch.

A mark outlives the process that wrote it, and that is all it is for: its commit does not wait for the disk. Lost with a crash of
the database itself, it is written again with the next delivery.
"""

from sqlalchemy import TextClause, text

from counterfoil.ledger.arrays import column

PLACE = {"d_topic": "text", "d_partition": "int4"}
MARKED = {**PLACE, "d_epoch": "int4", "d_first": "int8", "d_last": "int8"}


def _bound(statement: str, names: dict[str, str]) -> TextClause:
    return text(statement).bindparams(*(column(name, element) for name, element in names.items()))


MAKE = _bound(
    """
INSERT INTO counterfoil.decoding (topic, partition)
SELECT topic, partition FROM unnest(:d_topic, :d_partition) AS a(topic, partition) ORDER BY topic, partition
ON CONFLICT DO NOTHING
""",
    PLACE,
)

#: Takes the partitions' rows; says of whoever marked something there last whether it ended in order.
TAKE = _bound(
    """
WITH asked AS MATERIALIZED (SELECT * FROM unnest(:d_topic, :d_partition) AS a(topic, partition) ORDER BY topic, partition)
SELECT d.*, w.stopped_at IS NOT NULL AS in_order
FROM asked a JOIN counterfoil.decoding d USING (topic, partition) LEFT JOIN counterfoil.worker w ON w.id = d.session
ORDER BY topic, partition FOR NO KEY UPDATE OF d
""",
    PLACE,
)

#: What is known of a partition once it is taken: a new epoch, nothing being decoded, and who is suspected.
TAKEN: TextClause = text(
    """
UPDATE counterfoil.decoding SET epoch = epoch + 1, session = :session, first_offset = NULL, last_offset = NULL,
    suspect_first = :suspect_first, suspect_last = :suspect_last, died_together = :died_together,
    named_offset = :named_offset, died_alone = :died_alone
WHERE topic = :topic AND partition = :partition
RETURNING epoch
"""
)

#: These records are being decoded from here on. Answers the partitions that are still the asker's.
MARK = _bound(
    """
WITH quick AS MATERIALIZED (SELECT set_config('synchronous_commit', :d_commit, true) AS said),
asked AS MATERIALIZED (
    SELECT * FROM unnest(:d_topic, :d_partition, :d_epoch, :d_first, :d_last) AS a(topic, partition, epoch, first, last), quick
)
UPDATE counterfoil.decoding d SET session = :d_session, first_offset = a.first, last_offset = a.last
FROM asked a WHERE d.topic = a.topic AND d.partition = a.partition AND d.epoch = a.epoch
RETURNING d.topic, d.partition
""",
    MARKED,
)

#: They are decoded. A newer mark, or another owner's row, is left as it is.
FINISH = _bound(
    """
UPDATE counterfoil.decoding d SET first_offset = NULL, last_offset = NULL
FROM unnest(:d_topic, :d_partition, :d_epoch, :d_first, :d_last) AS a(topic, partition, epoch, first, last)
WHERE d.topic = a.topic AND d.partition = a.partition AND d.epoch = a.epoch
    AND d.first_offset = a.first AND d.last_offset = a.last
""",
    MARKED,
)

#: Which of these sessions are not over: each with the end of its lease, and the seconds until then; `in_order`: it said good-bye.
LIVING = _bound(
    """
SELECT w.id, w.lease_until, w.stopped_at IS NOT NULL AS in_order,
    extract(epoch FROM w.lease_until - counterfoil.ledger_time())::float8 AS seconds
FROM counterfoil.worker w WHERE w.id = ANY(:d_sessions)
    AND (w.stopped_at IS NOT NULL OR w.lease_until > counterfoil.ledger_time())
""",
    {"d_sessions": "int8"},
)
