"""Pauses in the ledger: acts of people, with a reason, an end by the ledger's clock, and nothing that somebody must tidy up."""

from __future__ import annotations

from datetime import timedelta

import pytest
from sqlalchemy import Connection

from counterfoil.core.errors import Refused
from counterfoil.core.reasons import Reason
from counterfoil.ledger import acts
from counterfoil.ledger.names import ledger_of
from counterfoil.ledger.pauses import Chosen, pause, paused, pauses, resume, set_limits
from tests.support.ledgers import Bed


def _acts(connection: Connection) -> list[tuple[str, str, str, str]]:
    return [(one.action, one.subject, one.reason, one.result) for one in reversed(acts.read(connection))]


def test_a_pause_is_an_act_and_ends_by_another(ledger: Bed) -> None:
    with ledger.engine.begin() as connection:
        book = ledger_of(connection)
        one = pause(connection, book, "type", "push", "vendor asked, ticket 7")
        assert (one.kind, one.name, one.reason, one.until) == ("type", "push", "vendor asked, ticket 7", None)
        assert pauses(connection) == [one]
    with ledger.engine.begin() as connection:
        assert paused(connection) == {("type", "push")}
        pause(connection, book, "type", "push", "still", timedelta(hours=2))
        resume(connection, book, "type", "push", "vendor is done")
        assert paused(connection) == frozenset()
        assert _acts(connection) == [
            ("pause", "type push", "vendor asked, ticket 7", "paused"),
            ("pause", "type push", "still", "paused anew"),
            ("resume", "type push", "vendor is done", "resumed"),
        ]
        assert acts.verify(connection).broken is None


def test_a_pause_that_is_over_ends_by_itself_and_is_not_resumed(ledger: Bed) -> None:
    """L5: by the ledger's clock, whoever is awake."""
    with ledger.engine.begin() as connection:
        book = ledger_of(connection)
        pause(connection, book, "sink", "crm", "maintenance", timedelta(hours=2))
        assert paused(connection) == {("sink", "crm")}
    ledger.shift(timedelta(hours=2, seconds=1))
    with ledger.engine.begin() as connection:
        assert (paused(connection), pauses(connection)) == (frozenset(), [])
        with pytest.raises(Refused) as refused:
            resume(connection, book, "sink", "crm", "is over")
        assert refused.value.reason is Reason.NOT_PAUSED
        pause(connection, book, "sink", "crm", "again")
        assert [result for *_, result in _acts(connection)] == ["paused", "paused"]


@pytest.mark.parametrize("reason", ["", " ", "\x1b[2J", "x" * 501])
def test_a_pause_without_a_reason_that_people_can_read_is_refused(ledger: Bed, reason: str) -> None:
    with ledger.engine.begin() as connection, pytest.raises(Refused):
        pause(connection, ledger_of(connection), "type", "push", reason)
    with ledger.engine.connect() as connection:
        assert paused(connection) == frozenset()


def test_limits_that_a_person_sets_are_an_act_with_what_was_before(ledger: Bed) -> None:
    with ledger.engine.begin() as connection:
        book = ledger_of(connection)
        set_limits(connection, book, "crm", Chosen(4, 2.5), "the vendor's new contract")
        set_limits(connection, book, "crm", Chosen(None, None), "back to the code's")
        newest, first = acts.read(connection)
    assert (first.action, first.subject, first.result) == ("limit", "sink crm", "set")
    assert (newest.result, newest.detail) == (
        "as declared",
        {"before": {"concurrency": 4, "per_second": 2.5}, "after": {"concurrency": None, "per_second": None}},
    )
    assert ledger.rows("SELECT concurrency, per_second FROM counterfoil.sink") == [{"concurrency": None, "per_second": None}]
