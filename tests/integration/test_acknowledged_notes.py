"""Notes of offset commits do not grow for ever, and of each partition the newest stays however old it is."""

from __future__ import annotations

from datetime import timedelta

from sqlalchemy import text

from counterfoil.ledger.acknowledgements import drop_acknowledged
from counterfoil.ledger.engine import in_transaction
from tests.support.ledgers import Bed

DAY = timedelta(days=1)
FILL = text(
    """
INSERT INTO counterfoil.acknowledged (topic, partition, up_to, session, at)
SELECT topic, partition, up_to, 1, counterfoil.ledger_time() - CAST(:age AS interval) + up_to * interval '1 s'
FROM unnest(CAST(:topics AS text[])) topic, generate_series(0, 2) partition, generate_series(CAST(:first AS int), :last) up_to
"""
)


def fill(ledger: Bed, topics: list[str], age: timedelta, first: int, last: int) -> None:
    with ledger.engine.begin() as connection:
        connection.execute(FILL, {"topics": topics, "age": age, "first": first, "last": last})


def test_old_notes_go_in_batches_and_the_newest_of_each_partition_stays(ledger: Bed) -> None:
    fill(ledger, ["busy", "quiet"], 31 * DAY, 1, 10)
    fill(ledger, ["busy"], 2 * DAY, 11, 15)

    def drop(limit: int) -> int:
        return in_transaction(ledger.engine, lambda connection: drop_acknowledged(connection, 30 * DAY, limit=limit))

    assert [drop(40), drop(40), drop(40)] == [40, 3 * 10 + 3 * 9 - 40, 0]
    kept = (
        "SELECT topic, partition, min(up_to) AS low, max(up_to) AS high FROM counterfoil.acknowledged GROUP BY 1, 2 ORDER BY 1, 2"
    )
    assert [tuple(row.values()) for row in ledger.rows(kept)] == [
        *(("busy", partition, 11, 15) for partition in range(3)),
        *(("quiet", partition, 10, 10) for partition in range(3)),
    ]


def test_on_an_empty_ledger_there_is_nothing_to_delete(ledger: Bed) -> None:
    assert in_transaction(ledger.engine, lambda connection: drop_acknowledged(connection, DAY, limit=10)) == 0
