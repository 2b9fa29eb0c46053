"""The planted mistakes of a declaration, by number: each is refused by a type checker, the import, `check` or enqueue."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from counterfoil import DeclarationError, Refused, enqueue
from counterfoil.cli.finding import Mark
from counterfoil.cli.type_checks import look
from counterfoil.settings import Settings
from counterfoil.testing import check
from tests.support.ledgers import Bed
from tests.support.mistakes import MISTAKES, Mistake, Refusal, imported
from tests.support.processes import ROOT

numbered = pytest.mark.parametrize("number", MISTAKES)


def test_there_are_51_of_them_and_a_type_checker_refuses_31() -> None:
    assert len(MISTAKES) == 51
    assert sum(one.typed for one in MISTAKES.values()) == 31
    typed_or_imported = [one for one in MISTAKES.values() if one.typed or one.refusal is Refusal.IMPORT]
    assert len(typed_or_imported) == 31 + 12
    rest = [one.refusal for one in MISTAKES.values() if one not in typed_or_imported]
    assert (rest.count(Refusal.CHECK), rest.count(Refusal.PROVE)) == (5, 3)


@numbered
def test_it_is_refused_at_import_or_by_check_or_not_before_it_runs(number: int) -> None:
    mistake = MISTAKES[number]
    if mistake.refusal is Refusal.IMPORT:
        with pytest.raises(DeclarationError) as caught:
            imported(mistake)
        assert mistake.says in str(caught.value)
        return
    found = check(imported(mistake).OPERATIONS)
    assert all(one.type == "sync_customer" and one.remedy for one in found)
    if mistake.refusal is Refusal.CHECK:
        assert [one.rule for one in found if mistake.says in one.rule]
    else:
        assert not found


@pytest.mark.parametrize("number", [number for number, one in MISTAKES.items() if one.refusal is Refusal.CALL])
def test_what_only_runs_wrong_raises_where_it_is_called(number: int) -> None:
    called = imported(MISTAKES[number]).CALLED
    with pytest.raises(Exception) as caught:
        called()
    assert type(caught.value).__name__ == MISTAKES[number].says


@pytest.mark.parametrize("number", [number for number, one in MISTAKES.items() if one.refusal is Refusal.CHECK])
def test_counterfoil_check_finds_what_a_users_own_test_finds(number: int) -> None:
    imported(MISTAKES[number])
    settings = Settings(
        ledger="books",
        operations="user_module:OPERATIONS",
        database="postgresql://h/d",
        brokers="h:1",
        registry_lock=ROOT / "examples/contracts/registry.lock",
    )
    _, findings = look(settings)
    assert [one for one in findings if one.mark is Mark.WRONG and MISTAKES[number].says in one.what]


def test_the_right_declaration_has_no_mistake() -> None:
    assert not check(imported(Mistake("", False, Refusal.CHECK, "")).OPERATIONS)


def test_a_type_checker_refuses_those_that_it_can_see_and_no_others(tmp_path: Path) -> None:
    """One run of mypy for all of them: each is a module, and the right declaration is one more."""
    files = {f"mistake_{number:02}": one for number, one in MISTAKES.items()} | {"right": Mistake("", False, Refusal.CHECK, "")}
    for name, one in files.items():
        (tmp_path / f"{name}.py").write_text(one.source())
    command = [sys.executable, "-m", "mypy", "--config-file", str(ROOT / "pyproject.toml"), "--no-error-summary"]
    command += [str(tmp_path / f"{name}.py") for name in files]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, env={"MYPYPATH": str(ROOT), "PATH": ""})
    said = {name: [line for line in done.stdout.splitlines() if f"{name}.py:" in line and "error:" in line] for name in files}
    assert {name for name, lines in said.items() if lines} == {name for name, one in files.items() if one.typed}, done.stdout[
        :2000
    ]


def test_enqueue_refuses_what_only_a_type_checker_sees_and_writes_nothing(ledger: Bed) -> None:
    for number, mistake in MISTAKES.items():
        if mistake.refusal is not Refusal.ENQUEUE:
            continue
        module = imported(mistake)
        type_, payload = module.ENQUEUED
        with ledger.engine.begin() as connection, pytest.raises(Refused) as caught:
            enqueue(getattr(module, "CALLER", connection), type_, payload)
        assert caught.value.reason.value == mistake.says, f"{number}: {mistake.what}"
    assert ledger.one("SELECT count(*) FROM counterfoil.operation") == 0
