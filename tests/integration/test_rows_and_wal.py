"""What one operation costs the database on its happy path, counted: rows by table, and bytes of write-ahead log."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import timedelta
from itertools import count as numbers
from typing import Any

from sqlalchemy import Connection, text

from counterfoil import enqueue_many
from counterfoil.bench.declared import shipments, show_shipment
from counterfoil.core.standing import REVIEW_WITHIN, Rules
from counterfoil.ledger import decoding, relaying, sessions, settlement
from counterfoil.ledger.admission import Candidate
from counterfoil.ledger.engine import in_transaction, ledger_engine
from counterfoil.ledger.relaying import Noted, Terms, Wanted
from tests.support.ledgers import Bed
from tests.support.stock import Hand, done

BATCH = 500
PLACE = ("road.commands", 0)
OPERATIONS = 2_000
MOST_WAL = 6 * 1024  #: bytes an operation (design §11)
TERMS = Terms(lease=timedelta(hours=1), silence=timedelta(0))
#: Design §11, an operation: what is inserted, updated and deleted.
HAPPY_PATH = {
    ("operation", "inserted"): 1,
    ("state", "inserted"): 1,
    ("payload", "inserted"): 1,
    ("event", "inserted"): 3,
    ("outbox", "inserted"): 2,
    ("published", "inserted"): 2,
    ("state", "updated"): 2,
    ("outbox", "deleted"): 2,
}
#: And a batch, whatever its size: the mark of what is being decoded, written and wiped.
EACH_BATCH = {("decoding", "updated"): 2}
WRITTEN = "SELECT relname, n_tup_ins, n_tup_upd, n_tup_del FROM pg_stat_user_tables WHERE schemaname = 'counterfoil'"
#: Of this session alone: other tests write on the same server.
WAL = "SELECT wal_bytes, wal_fpi FROM pg_stat_get_backend_wal(pg_backend_pid())"


class Road:
    """The road of operations by one connection: enqueue, relay, admit, settle, relay; no Kafka, whose side has no rows."""

    def __init__(self, bed: Bed) -> None:
        self.engine = ledger_engine(bed.url, pool_size=1)
        rules = Rules.of(
            show_shipment, send_grace=timedelta(seconds=5), in_ledger_time=timedelta(seconds=60), review_within=REVIEW_WITHIN
        )
        self.hand = Hand(self.engine, rules, lease=timedelta(hours=1))
        self.offsets = numbers()
        with self.engine.begin() as connection:
            self.relay = sessions.open_session(connection, "relay", "hand", timedelta(hours=1))
            self.epochs = relaying.claim_shards(connection, self.relay, 64, TERMS)
            self.taken = decoding.take(connection, self.hand.session, (), [PLACE])[PLACE]

    def travel(self, first: int, count: int) -> None:
        """These operations from acceptance to the last note, in batches."""
        for start in range(first, first + count, BATCH):
            self._batch(start)

    def _batch(self, first: int) -> None:
        with self.engine.begin() as connection:
            enqueue_many(connection, show_shipment, shipments(first, BATCH))
        assert self._publish() == BATCH
        mark = [decoding.Mark(*PLACE, self.taken.epoch, first, first + BATCH - 1)]
        assert not in_transaction(self.engine, lambda c: decoding.mark(c, self.hand.session, mark, durable=False))
        admitted = self.hand.admit(*self._candidates()).admitted
        in_transaction(self.engine, lambda c: decoding.finish(c, mark))
        assert len(admitted) == BATCH

        def settle(connection: Connection) -> None:
            locked = settlement.lock(connection, list(admitted))
            results = [settlement.Result(number, done(1)) for number in admitted]
            settlement.save(connection, self.hand.writer, self.hand.rules, locked, results)

        in_transaction(self.engine, settle)
        assert self._publish() == BATCH

    def _publish(self) -> int:
        wanted = Wanted(dict.fromkeys(range(64), 0), BATCH, BATCH, 100_000_000)
        rows = in_transaction(self.engine, lambda c: relaying.read_waiting(c, wanted))
        reports = [Noted(shard, row_id, self.epochs[shard], 0, next(self.offsets)) for shard, row_id, *_ in rows]
        return in_transaction(self.engine, lambda c: relaying.note(c, self.relay, reports))

    def _candidates(self) -> list[Candidate]:
        newest = "SELECT number, value_hash FROM counterfoil.payload ORDER BY number DESC LIMIT :batch"
        with self.engine.connect() as connection:
            rows = connection.execute(text(newest), {"batch": BATCH}).all()
        return [Candidate(row.number, 1, bytes(row.value_hash), "commands", 0, row.number) for row in rows]

    def wal(self) -> tuple[int, int]:
        """Bytes that this session has written so far, and the full page images among them."""
        (row,) = self._counted(WAL)
        return int(row.wal_bytes), int(row.wal_fpi)

    def written(self) -> Counter[tuple[str, str]]:
        """Rows inserted, updated and deleted so far, by table; partitions count with their table."""
        found: Counter[tuple[str, str]] = Counter()
        for row in self._counted(WRITTEN):
            table = re.sub(r"_(\d{8}|default)$", "", row.relname)
            found.update(
                {(table, "inserted"): row.n_tup_ins, (table, "updated"): row.n_tup_upd, (table, "deleted"): row.n_tup_del}
            )
        return found

    def _counted(self, query: str) -> Sequence[Any]:
        """PostgreSQL's own counts, after this session, the only one on this database, has handed in what it kept back."""
        with self.engine.begin() as connection:
            connection.execute(text("SELECT pg_stat_force_next_flush()"))
        with self.engine.begin() as connection:
            return connection.execute(text(query)).all()


def on_the_road(bed: Bed, measure: Callable[[Road], None]) -> None:
    road = Road(bed)
    try:
        measure(road)
    finally:
        road.engine.dispose()


def test_the_happy_path_of_an_operation_writes_exactly_these_rows(ledger: Bed) -> None:
    """Design §11: ten inserts, two updates, two deletes, two updates a batch, and no other table is touched."""

    def measure(road: Road) -> None:
        before = road.written()
        road.travel(0, OPERATIONS)
        found = road.written()
        found.subtract(before)
        each = {key: OPERATIONS * rows for key, rows in HAPPY_PATH.items()}
        batch = {key: OPERATIONS // BATCH * rows for key, rows in EACH_BATCH.items()}
        assert {key: rows for key, rows in found.items() if rows} == each | batch

    on_the_road(ledger, measure)
    assert ledger.rows("SELECT state, count(*) AS many FROM counterfoil.state GROUP BY 1") == [
        {"state": "confirmed", "many": OPERATIONS}
    ]


def test_an_operation_writes_at_most_six_kilobytes_of_write_ahead_log(ledger: Bed) -> None:
    """Design §11, for a payload of 300 bytes.

    Right after a checkpoint, PostgreSQL writes whole pages once; how many depends on when it falls, not on us. So a first round
    warms the pages, and of three more the smallest counts: each is one session's own log, and one without a checkpoint has no
    page images (`wal_fpi`), or few.
    """

    def measure(road: Road) -> None:
        road.travel(0, BATCH)
        rounds = []
        for number in range(1, 4):
            before, images_before = road.wal()
            road.travel(number * OPERATIONS, OPERATIONS)
            after, images = road.wal()
            rounds.append(((after - before) / OPERATIONS, images - images_before))
        bytes_each, images = min(rounds)
        assert 1_000 < bytes_each <= MOST_WAL, f"{bytes_each:.0f} bytes an operation, {images} page images"

    on_the_road(ledger, measure)
