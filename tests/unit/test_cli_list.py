"""The table of `operations list`: an id is whole at every width, and what fits decides between one line and two."""

import io
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from rich.console import Console

from counterfoil.cli.operation_list import print_list
from counterfoil.ledger.reading import Line

NOON = datetime(2026, 12, 1, 12, tzinfo=UTC)
IDS = [UUID(int=2**127 + number) for number in (2, 1)]


def listed(monkeypatch: pytest.MonkeyPatch, columns: int | None, *, due: timedelta | None = timedelta(minutes=3)) -> list[str]:
    """The lines that are printed where a terminal is so wide; None: where nothing is known of one."""
    if columns is None:
        monkeypatch.delenv("COLUMNS", raising=False)
    else:
        monkeypatch.setenv("COLUMNS", str(columns))
    at = None if due is None else NOON + due
    lines = [
        Line(7, one, "sync_customer", NOON - timedelta(minutes=5), "awaiting_confirmation", 2, 6, "timeout", at, None, NOON)
        for one in IDS
    ]
    out = io.StringIO()
    print_list(Console(file=out, highlight=False, soft_wrap=True), lines, NOON, utc=True)
    return out.getvalue().splitlines()


@pytest.mark.parametrize("columns", [40, 60, 79, 80, 100, 120, 139, 140, 200])
def test_an_id_is_never_folded_and_no_line_is_too_wide(monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    said = listed(monkeypatch, columns)
    assert [row[:36] for row in said if row.startswith("8")] == [str(one) for one in IDS]
    assert max(map(len, said)) <= columns


def test_eighty_columns_show_an_operation_in_two_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    head, first, second, *_ = listed(monkeypatch, 80)
    assert head.split() == ["operation_id", "type", "state"]
    assert first.split() == [str(IDS[0]), "sync_customer", "awaiting_confirmation"]
    assert second.split() == ["2", "of", "8,", "due", "in", "3m,", "5m", "old", "timeout"]


def test_what_is_overdue_says_for_how_long(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "due for 3m" in listed(monkeypatch, 80, due=timedelta(minutes=-3))[2]
    assert "due" not in listed(monkeypatch, 80, due=None)[2]


@pytest.mark.parametrize("columns", [160, None])
def test_with_room_or_in_a_pipe_an_operation_is_one_line(monkeypatch: pytest.MonkeyPatch, columns: int | None) -> None:
    head, *rows = listed(monkeypatch, columns)
    assert head.split() == ["operation_id", "type", "state", "attempt", "due", "reason", "accepted"]
    assert [row.split()[0] for row in rows] == [str(one) for one in IDS]
