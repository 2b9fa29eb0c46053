"""The planted mistakes that only a type checker sees before anything runs: enqueue refuses each, for those who use none."""

from __future__ import annotations

import pytest

from counterfoil import Refused, enqueue
from tests.support.ledgers import Bed
from tests.support.mistakes import MISTAKES, Refusal, imported


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
