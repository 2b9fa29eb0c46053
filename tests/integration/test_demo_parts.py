"""The demo's own parts: its store's journal, its contracts and their lock."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from counterfoil.demo.declared import CONTRACTS, OPERATIONS, STORE_FOLDER, Report, reports
from counterfoil.demo.store import JOURNAL, stored_entries
from counterfoil.schemas.contract import contract_of
from counterfoil.schemas.lock import ensure_lock
from counterfoil.sinks.journal import Fate, Journal, doubled
from tests.support.attempts import an_attempt

JULY = Report("turnover-1", "2026-07")


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(STORE_FOLDER, str(tmp_path))
    return tmp_path


def test_the_contracts_are_locked_and_fit_their_types() -> None:
    before = (CONTRACTS / "registry.lock").read_bytes()
    ensure_lock(OPERATIONS)
    assert (CONTRACTS / "registry.lock").read_bytes() == before
    for one in OPERATIONS.types:
        contract_of(one)


def test_a_report_is_journalled_as_one_effect_however_often_it_is_written(store: Path) -> None:
    first = an_attempt()
    reports.effect(JULY, first)
    reports.effect(JULY, an_attempt(number=2, operation=first.operation_id))
    assert [(entry.fate, entry.changed_content) for entry in stored_entries(store)] == [
        (Fate.APPLIED, True),
        (Fate.APPLIED, False),
    ]
    assert doubled(stored_entries(store)) == 0


def test_other_bytes_at_the_same_place_are_a_second_effect(store: Path) -> None:
    first = an_attempt()
    reports.effect(JULY, first)
    reports.effect(Report("turnover-1", "2026-08"), an_attempt(number=2, operation=first.operation_id))
    assert doubled(stored_entries(store)) == 1


@pytest.mark.parametrize("renamed", [True, False])
@pytest.mark.parametrize("again", [True, False])
def test_a_worker_killed_around_the_rename_is_told_by_what_is_there(
    store: Path, monkeypatch: pytest.MonkeyPatch, renamed: bool, again: bool
) -> None:
    """D94: between the journal's two lines the file says what happened."""

    class Killed(BaseException):
        pass

    def kill(part: Path, place: Path) -> None:
        if renamed:
            os.rename(part, place)
        raise Killed

    first = an_attempt()
    with monkeypatch.context() as patched:
        patched.setattr("counterfoil.demo.store.os.replace", kill)
        with pytest.raises(Killed):
            reports.effect(JULY, first)
    if again:
        reports.effect(JULY, an_attempt(number=2, operation=first.operation_id))
    seen = stored_entries(store)
    assert sum(entry.changed_content for entry in seen) == (renamed or again)
    assert doubled(seen) == 0


def test_the_journal_stands_beside_the_reports_and_not_among_them(store: Path) -> None:
    attempt = an_attempt()
    reports.effect(JULY, attempt)
    assert [path.name for path in (store / "reports").iterdir()] == [f"{attempt.operation_id}.csv"]
    held, applied = Journal(store / JOURNAL).entries()
    assert applied == replace(held, fate=Fate.APPLIED, changed_content=True)
