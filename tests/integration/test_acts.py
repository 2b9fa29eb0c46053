"""Acts on a real ledger: one chain, whoever writes at the same time, and nothing of it can be changed unseen (S15)."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from counterfoil.core.acts import Action
from counterfoil.core.errors import Refused
from counterfoil.ledger import acts
from counterfoil.ledger.names import ledger_of
from tests.support.ledgers import Bed


def write(ledger: Bed, subject: str, **more: object) -> int:
    with ledger.engine.begin() as connection:
        return acts.record(connection, ledger_of(connection), Action.PAUSE, subject, "why", "paused", **more)  # type: ignore[arg-type]


def test_an_act_says_who_when_what_why_and_with_which_result(ledger: Bed) -> None:
    assert write(ledger, "crm", number=7, detail={"b": 1, "a": ["x", None, 1.5, 2**60], "c": {"é": True}}) == 1
    with ledger.engine.connect() as connection:
        [one] = acts.read(connection)
        assert one.actor == connection.execute(text("SELECT session_user")).scalar_one()
        assert (one.action, one.number, one.subject, one.reason, one.result) == ("pause", 7, "crm", "why", "paused")
        assert one.detail == {"a": ["x", None, 1.5, 2**60], "b": 1, "c": {"é": True}}
        assert acts.read(connection, number=7) == acts.read(connection, subject="crm") == [one]
        assert acts.read(connection, number=8) == acts.read(connection, before=1) == []
        assert acts.verify(connection).broken is None


def test_acts_of_many_sessions_at_once_are_one_chain(ledger: Bed) -> None:
    """S15."""
    with ThreadPoolExecutor(8) as threads:
        numbers = list(threads.map(lambda n: write(ledger, f"sink-{n}"), range(40)))
    assert sorted(numbers) == list(range(1, 41))
    with ledger.engine.connect() as connection:
        verified = acts.verify(connection)
    assert (verified.acts, verified.broken) == (40, None)


def test_an_act_of_a_transaction_that_is_rolled_back_leaves_no_gap(ledger: Bed) -> None:
    write(ledger, "one")
    with ledger.engine.connect() as connection:
        acts.record(connection, ledger_of(connection), Action.PAUSE, "never", "why", "paused")
        connection.rollback()
    assert write(ledger, "two") == 2
    with ledger.engine.connect() as connection:
        assert acts.verify(connection).broken is None


def test_a_session_that_sees_an_old_snapshot_cannot_fork_the_chain(ledger: Bed) -> None:
    """S15."""
    with ledger.engine.connect().execution_options(isolation_level="REPEATABLE READ") as connection:
        connection.execute(text("SELECT count(*) FROM counterfoil.act"))
        write(ledger, "first")
        with pytest.raises(DBAPIError):
            acts.record(connection, ledger_of(connection), Action.PAUSE, "second", "why", "paused")


@pytest.mark.parametrize(
    "tampering",
    [
        "UPDATE counterfoil.act SET reason = 'another' WHERE id = 3",
        "UPDATE counterfoil.act SET actor = 'nobody' WHERE id = 3",
        "UPDATE counterfoil.act SET detail = '{}' WHERE id = 3",
        "UPDATE counterfoil.act SET at = at + interval '1 microsecond' WHERE id = 3",
        "UPDATE counterfoil.act SET chain = sha256(chain) WHERE id = 3",
    ],
)
def test_an_act_that_was_changed_is_found(ledger: Bed, tampering: str) -> None:
    """S15."""
    for n in range(5):
        write(ledger, f"sink-{n}", detail={"n": n})
    with ledger.engine.begin() as connection:
        connection.execute(text(tampering))
        assert acts.verify(connection).broken == 3


def test_an_act_that_was_removed_is_found(ledger: Bed) -> None:
    """S15."""
    for n in range(3):
        write(ledger, f"sink-{n}")
    with ledger.engine.begin() as connection:
        connection.execute(text("DELETE FROM counterfoil.act WHERE id = 2"))
        assert acts.verify(connection).broken == 3


def test_a_text_that_a_terminal_obeys_is_in_no_act(ledger: Bed) -> None:
    with pytest.raises(Refused):
        write(ledger, "crm\x1b[2J")
    assert ledger.one("SELECT count(*) FROM counterfoil.act") == 0
