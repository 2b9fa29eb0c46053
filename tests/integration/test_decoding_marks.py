"""The marks of what is being decoded: who is accused by one that is left behind, who is not, and what they cost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta

import pytest
from confluent_kafka import Message
from sqlalchemy import text

from counterfoil.core.reasons import Reason
from counterfoil.core.suspicion import INNOCENT, Suspicion
from counterfoil.ledger import decoding, sessions
from counterfoil.ledger.decoding import Mark, Taken
from counterfoil.ledger.engine import in_transaction
from counterfoil.streams.ledger_calls import LedgerCalls
from counterfoil.streams.worker.decoding import Decoded, Decoding, Found
from counterfoil.streams.worker.in_hand import InHand
from counterfoil.streams.worker.lease import Lease
from counterfoil.streams.worker.record import Record, Unreadable
from tests.support.ledgers import Bed

TOPIC = "t.commands"
PLACE = (TOPIC, 0)
LEASE = timedelta(seconds=30)
#: Bytes of write-ahead log of one batch's mark and of its wiping (measured: 262).
MOST_WAL = 600


def _session(bed: Bed, lease: timedelta = LEASE) -> int:
    return in_transaction(bed.engine, lambda c: sessions.open_session(c, "worker", "marks", lease))


def _take(bed: Bed, session: int, own: Sequence[int] = ()) -> Taken:
    return in_transaction(bed.engine, lambda c: decoding.take(c, session, own, [PLACE]))[PLACE]


def _mark(bed: Bed, session: int, epoch: int, first: int, last: int) -> set[tuple[str, int]]:
    marks = [Mark(*PLACE, epoch, first, last)]
    return in_transaction(bed.engine, lambda c: decoding.mark(c, session, marks, durable=False))


def _dies_over(bed: Bed, first: int, last: int) -> int:
    """A session takes the partition, begins these records, and is not heard of again."""
    session = _session(bed)
    _mark(bed, session, _take(bed, session).epoch, first, last)
    return session


class Worker:
    """The decoding of one worker, on records made by hand."""

    def __init__(self, bed: Bed, session: int | None = None) -> None:
        self.bed = bed
        self.session = _session(bed) if session is None else session
        self.in_hand = InHand(1000)
        self.in_hand.assign([PLACE])
        self.decoding = Decoding(LedgerCalls(bed.engine, 20.0), lambda: self.session, self.in_hand)
        self.read: list[int] = []

    def decode(self, *offsets: int, meanwhile: Callable[[], None] = lambda: None) -> Decoded:
        prefix = self.in_hand.prefix(PLACE)
        assert prefix is not None
        records = [Record(Message(*PLACE, offset, value=b"v"), prefix, offset, 1) for offset in offsets]
        self.in_hand.take("t", records)
        begun = self.in_hand.begin("t", records)

        def read(record: Record) -> Found:
            self.read.append(record.offset)
            meanwhile()
            return Unreadable(record, [], Reason.UNDECODABLE_FRAME, None)

        return self.decoding.decode("t", begun, read)

    def finish(self, decoded: Decoded) -> None:
        in_transaction(self.bed.engine, lambda c: self.decoding.finish(c, decoded))

    def marked(self) -> tuple[int, int] | None:
        (row,) = self.bed.rows("SELECT first_offset, last_offset FROM counterfoil.decoding")
        return None if row["first_offset"] is None else (row["first_offset"], row["last_offset"])


def test_a_mark_stands_while_a_batch_is_decoded_and_is_wiped_afterwards(ledger: Bed) -> None:
    """S23: committed before the first record is looked at."""
    worker = Worker(ledger)
    seen: list[tuple[int, int] | None] = []
    decoded = worker.decode(3, 4, 9, meanwhile=lambda: seen.append(worker.marked()))
    assert seen == [(3, 9)] * 3
    worker.finish(decoded)
    assert worker.marked() is None


def test_a_newer_batch_s_mark_replaces_an_older_one_which_then_wipes_nothing(ledger: Bed) -> None:
    """S23: while one batch is in the database the next is decoded."""
    worker = Worker(ledger)
    first, second = worker.decode(1, 2), worker.decode(3, 4)
    worker.finish(first)
    assert worker.marked() == (3, 4)
    worker.finish(second)
    assert worker.marked() is None


def test_a_mark_left_behind_accuses_unless_its_session_ended_in_order_or_is_our_own(ledger: Bed) -> None:
    """S23: a worker that was told to leave, or only lost the partition, killed nobody."""
    dead = _dies_over(ledger, 3, 9)
    assert _take(ledger, _session(ledger), own=[dead]).suspicion == INNOCENT
    dead = _dies_over(ledger, 3, 9)
    in_transaction(ledger.engine, lambda c: sessions.close_session(c, dead))
    assert _take(ledger, _session(ledger)).suspicion == INNOCENT
    dead = _dies_over(ledger, 3, 9)
    taken = _take(ledger, _session(ledger))
    assert (taken.suspicion, taken.died) == (Suspicion(3, 9, together=dead), 7)
    assert _take(ledger, _session(ledger)).suspicion == taken.suspicion  # kept for whoever comes next


def test_suspects_are_decoded_alone_each_under_a_mark_of_its_own_and_in_their_order(ledger: Bed) -> None:
    """S23: the records around them go on as a batch."""
    _dies_over(ledger, 4, 5)
    worker = Worker(ledger)
    seen: list[tuple[int, int] | None] = []
    decoded = worker.decode(3, 4, 5, 6, meanwhile=lambda: seen.append(worker.marked()))
    assert seen == [(3, 6), (3, 6), (4, 4), (5, 5)]
    assert [one.record.offset for one in decoded.found] == [3, 4, 5, 6]
    assert worker.marked() is None


def test_what_killed_three_workers_is_not_decoded_once_their_leases_are_over(ledger: Bed) -> None:
    """S23, L5."""
    _dies_over(ledger, 4, 9)
    for _ in range(2):
        _dies_over(ledger, 7, 7)
    ledger.shift(2 * LEASE)
    worker = Worker(ledger)
    decoded = worker.decode(6, 7, 8)
    assert worker.read == [6, 8]
    assert [(one.record.offset, one.reason) for one in decoded.found if isinstance(one, Unreadable)] == [
        (6, Reason.UNDECODABLE_FRAME),
        (7, Reason.KILLS_THE_PROCESS),
        (8, Reason.UNDECODABLE_FRAME),
    ]


@pytest.mark.parametrize("how", ["renews", "ends in order"])
def test_a_session_that_lives_or_ended_in_order_did_not_die_of_the_record(ledger: Bed, how: str) -> None:
    """S23, S9: a worker that was stopped for a while, and lost its partition meanwhile, accuses nobody."""
    _dies_over(ledger, 4, 9)
    _dies_over(ledger, 7, 7)
    ledger.shift(2 * LEASE)
    stalled = Lease(LedgerCalls(ledger.engine, 20.0), "stalled", timedelta(seconds=2), {})
    stalled.open()
    try:
        _mark(ledger, stalled.session, _take(ledger, stalled.session).epoch, 7, 7)
        worker = Worker(ledger)
        assert _take(ledger, worker.session).suspicion.guilty(7)
        if how == "ends in order":
            stalled.close()
        worker.decode(7)
        assert worker.read == [7]
    finally:
        stalled.close()


def test_a_partition_that_is_given_back_while_a_dead_lease_is_waited_for_leaves_its_suspects_to_the_next_owner(
    ledger: Bed,
) -> None:
    """S23, S6: nothing is finished that was not decoded."""
    _dies_over(ledger, 4, 9)
    for _ in range(2):
        _dies_over(ledger, 7, 7)
    worker = Worker(ledger)

    def stop() -> None:
        worker.in_hand.close(0)

    decoded = worker.decode(3, 7, 8, meanwhile=stop)
    assert [one.record.offset for one in decoded.found] == [3]
    assert worker.in_hand.positions()[PLACE][0] is None


def test_an_owner_that_was_overtaken_takes_the_partition_back_before_it_decodes(ledger: Bed) -> None:
    """S23: whoever decodes has a mark; two that both believe to own a partition never share one."""
    worker = Worker(ledger)
    worker.finish(worker.decode(1))
    other = Worker(ledger)
    other.decode(1, 2)
    seen: list[tuple[int, int] | None] = []
    worker.decode(2, meanwhile=lambda: seen.append(worker.marked()))
    assert seen == [(2, 2)]
    assert ledger.one("SELECT epoch FROM counterfoil.decoding") == 3


def test_a_batch_costs_two_updates_of_one_narrow_row(ledger: Bed) -> None:
    """S23, design §11: counted, beside 4 KB for each operation of the batch."""
    session = _session(ledger)
    epoch = _take(ledger, session).epoch
    with ledger.engine.connect() as connection:

        def wal() -> int:
            return int(connection.execute(text("SELECT wal_bytes FROM pg_stat_get_backend_wal(pg_backend_pid())")).scalar_one())

        def batch(first: int) -> None:
            mark = Mark(*PLACE, epoch, first, first + 999)
            assert decoding.mark(connection, session, [mark], durable=False) == set()
            connection.commit()
            decoding.finish(connection, [mark])
            connection.commit()

        batch(0)
        before = wal()
        for number in range(1, 101):
            batch(number * 1000)
        connection.execute(text("SELECT pg_stat_force_next_flush()"))
        connection.commit()
        each = (wal() - before) / 100
        assert 0 < each <= MOST_WAL, f"{each:.0f} bytes a batch"
    (counted,) = ledger.rows(
        "SELECT n_tup_ins, n_tup_upd FROM pg_stat_user_tables WHERE relname = 'decoding' AND schemaname = 'counterfoil'"
    )
    assert counted["n_tup_ins"] == 1
    assert counted["n_tup_upd"] <= 203
