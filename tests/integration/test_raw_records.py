"""Records kept raw: N of them in one statement, byte for byte, each once however often it comes."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

import pytest
from sqlalchemy import Connection, event

from counterfoil.core.reasons import Reason
from counterfoil.ledger import raw_records
from counterfoil.ledger.engine import in_transaction
from counterfoil.ledger.names import ledger_of
from counterfoil.ledger.raw_records import Raw, keep, unpacked
from counterfoil.reporting import raw_words
from tests.support.ledgers import Bed

DAY = timedelta(days=1)


def raw(
    offset: int, value: bytes | None = b"\x00odd", key: bytes | None = b"k", timestamp_ms: int | None = 1_700_000_000_000
) -> Raw:
    headers = (("trace", b"\xff\x00"), ("none", None))
    return Raw("shop.mail.commands", 1, offset, timestamp_ms, key, value, headers, "mail", None, Reason.UNDECODABLE_FRAME)


@dataclass
class Keeping:
    """Keeps records and counts the statements that it takes."""

    ledger: Bed
    statements: int = 0

    def __call__(self, *raws: Raw, held: bool = False) -> int:
        def unit(connection: Connection) -> int:
            ledger = ledger_of(connection)
            event.listen(connection, "before_cursor_execute", self._count)
            return keep(connection, ledger, raws, held=held, due_in=DAY, words=raw_words)

        return in_transaction(self.ledger.engine, unit)

    def _count(self, *_: object) -> None:
        self.statements += 1


def letters(ledger: Bed) -> int:
    return int(ledger.one("SELECT count(*) FROM counterfoil.outbox WHERE kind = 'dead_letter'"))


def test_a_batch_is_one_statement_and_every_byte_is_kept(ledger: Bed) -> None:
    keeping = Keeping(ledger)
    odd = [raw(0, value=None, key=None, timestamp_ms=None), raw(1, value=b"", key=b""), *(raw(n) for n in range(2, 40))]
    assert keeping(*odd) == 40
    assert keeping.statements == 1
    rows = ledger.rows("SELECT * FROM counterfoil.raw_record ORDER BY record_offset")
    assert [(row["key"], row["value"], row["record_time"] is None) for row in rows[:3]] == [
        (None, None, True),
        (b"", b"", False),
        (b"k", b"\x00odd", False),
    ]
    assert unpacked(rows[0]["headers"]) == [("trace", b"\xff\x00"), ("none", None)]
    assert {(row["status"], row["reason"], row["due_at"] - row["at"]) for row in rows} == {
        ("quarantined", "undecodable_frame", DAY)
    }
    sent = ledger.rows("SELECT * FROM counterfoil.outbox ORDER BY id")
    assert [(one["kind"], one["type"], one["number"]) for one in sent] == [("dead_letter", "mail", None)] * 40
    assert {one["value"] for one in sent} == {None, b"", b"\x00odd"}
    assert all(dict(one["headers"])["cf_reason"] == "undecodable_frame" for one in sent)


def test_the_same_record_is_kept_once_with_one_dead_letter(ledger: Bed) -> None:
    """D89: within a batch, and when the answer to its commit was lost."""
    keeping = Keeping(ledger)
    assert keeping(raw(7), raw(7), raw(8)) == 2
    assert keeping(raw(8), raw(9)) == 1
    assert letters(ledger) == 3
    assert ledger.one("SELECT count(*) FROM counterfoil.raw_record") == 3


def test_a_held_record_has_no_dead_letter(ledger: Bed) -> None:
    assert Keeping(ledger)(raw(7), held=True) == 1
    assert letters(ledger) == 0
    assert ledger.one("SELECT status FROM counterfoil.raw_record") == "held"


def test_large_records_are_kept_in_parts(ledger: Bed, monkeypatch: pytest.MonkeyPatch) -> None:
    """The memory that a statement takes stays bounded."""
    monkeypatch.setattr(raw_records, "MOST_BYTES", 100)
    keeping = Keeping(ledger)
    assert keeping(*(raw(n, value=bytes(60)) for n in range(3)), raw(3, value=bytes(500)), raw(4, value=bytes(10))) == 5
    assert keeping.statements == 5
    assert keeping(*(raw(n, value=bytes(10)) for n in range(10, 20))) == 10
    assert keeping.statements == 6


def test_nothing_to_keep_asks_nothing(ledger: Bed) -> None:
    keeping = Keeping(ledger)
    assert keeping() == 0
    assert keeping.statements == 0
