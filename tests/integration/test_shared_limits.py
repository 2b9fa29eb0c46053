"""Limits, breakers and pauses in the ledger: what several sessions are granted. Real PostgreSQL; sessions without processes."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from sqlalchemy import text

from counterfoil.core.breaker import Habits, Heard, Position, Sign
from counterfoil.ledger.limits import Ask, Granted, Key, enter, exchange, open_time
from counterfoil.ledger.sessions import close_session, open_session
from tests.support.ledgers import Bed

CRM = Key("crm")
LEASE = timedelta(seconds=30)
HABITS = Habits(after=5, wait=timedelta(seconds=5))
Ask_ = Callable[..., Granted]


@pytest.fixture
def ask(ledger: Bed) -> Ask_:
    """Exchange for one session and sink."""
    with ledger.engine.begin() as connection:
        enter(connection, [CRM])

    def asked(session: int, key: Key = CRM, **said: object) -> Granted:
        given = Ask(key, 10, None, 0, 99, 99)._replace(**said)  # type: ignore[arg-type]
        with ledger.engine.begin() as connection:
            return exchange(connection, session, [given], HABITS)[key]

    return asked


def _session(ledger: Bed, name: str) -> int:
    with ledger.engine.begin() as connection:
        return open_session(connection, "worker", name, LEASE, {})


def _end(ledger: Bed, session: int) -> None:
    with ledger.engine.begin() as connection:
        close_session(connection, session)


def test_two_workers_never_hold_more_slots_than_there_are_and_come_to_half_each(ledger: Bed, ask: Ask_) -> None:
    """L3: what one does not use any more the other gets."""
    first, second = _session(ledger, "a"), _session(ledger, "b")
    assert ask(first).slots == 10
    assert ask(second).slots == 0, "the first one has them all, and has not been asked yet"
    assert ask(first, in_use=10).slots == 10, "calls in flight are nobody else's"
    assert ask(first, in_use=4).slots == 5
    assert ask(second).slots == 5
    assert ask(first, in_use=0, wanted=0).slots == 0, "the other one wants all of them"
    assert ask(second).slots == 10


def test_a_dead_sessions_share_returns_with_its_lease(ledger: Bed, ask: Ask_) -> None:
    """L5."""
    dead, alive = _session(ledger, "dead"), _session(ledger, "alive")
    ask(dead, in_use=10)
    assert ask(alive).slots == 0
    ledger.shift(LEASE + timedelta(seconds=1))
    with ledger.engine.begin() as connection:
        connection.execute(text("UPDATE counterfoil.worker SET lease_until = lease_until + interval '1 h' WHERE name = 'alive'"))
    assert ask(alive).slots == 10
    with ledger.engine.begin() as connection:
        enter(connection, [CRM])
    assert ledger.one("SELECT count(*) FROM counterfoil.sink_share") == 1


def test_a_session_that_ended_gives_its_share_back_at_once(ledger: Bed, ask: Ask_) -> None:
    first, second = _session(ledger, "a"), _session(ledger, "b")
    ask(first, in_use=10)
    _end(ledger, first)
    assert ask(second).slots == 10


def test_tokens_of_two_workers_together_are_no_more_than_the_rate_and_a_short_burst(ledger: Bed, ask: Ask_) -> None:
    """Counted by the ledger's clock, which this test moves."""
    first, second = _session(ledger, "a"), _session(ledger, "b")
    begin = ledger.one("SELECT counterfoil.ledger_time()")
    given = 0
    for step in range(1, 21):
        ledger.shift(timedelta(milliseconds=50 * step))
        for session in (first, second):
            tokens = ask(session, per_second=20.0).tokens
            assert tokens is not None
            given += tokens
    passed = (ledger.one("SELECT counterfoil.ledger_time()") - begin).total_seconds()
    assert 0 < given <= passed * 20 + 4 + 1
    spent = ledger.one("SELECT spent_until FROM counterfoil.sink WHERE name = 'crm'")
    assert given <= (spent - begin).total_seconds() * 20 + 4 + 1, "each token is in the ledger's account"


def test_the_ledgers_limits_win_over_the_declared_ones_as_long_as_they_are_set(ledger: Bed, ask: Ask_) -> None:
    session = _session(ledger, "a")
    assert ask(session, per_second=None).tokens is None
    with ledger.engine.begin() as connection:
        connection.execute(text("UPDATE counterfoil.sink SET concurrency = 2, per_second = 5"))
    granted = ask(session, per_second=None)
    assert (granted.slots, granted.concurrency, granted.tokens) == (2, 2, 1)
    with ledger.engine.begin() as connection:
        connection.execute(text("UPDATE counterfoil.sink SET per_second = NULL"))
    assert ask(session, per_second=3.0).tokens is None, "set without a rate: not limited, whatever is declared"
    with ledger.engine.begin() as connection:
        connection.execute(text("UPDATE counterfoil.sink SET concurrency = NULL"))
    assert ask(session).slots == 10


def test_failures_on_several_workers_open_one_breaker_which_one_probe_closes(ledger: Bed, ask: Ask_) -> None:
    """D65: and the time in which it was open is known afterwards."""
    first, second = _session(ledger, "a"), _session(ledger, "b")
    begin = ledger.one("SELECT counterfoil.ledger_time()")
    assert ask(first, heard=Heard(3)).breaker.position is Position.CLOSED
    opened = ask(second, heard=Heard(2))
    assert (opened.before, opened.breaker.position, opened.breaker.failures) == (Position.CLOSED, Position.OPEN, 5)
    within = timedelta(seconds=20)
    assert ask(first, probe_within=within).breaker.position is Position.OPEN, "too early"
    ledger.shift(timedelta(seconds=6))
    assert ask(first).breaker.position is Position.OPEN, "it has nothing to probe with"
    assert ask(first, probe_within=within).breaker.prober == first
    assert ask(second, probe_within=within).breaker.prober == first
    assert ask(second, heard=Heard(0, alive=True, probe=Sign.ALIVE)).breaker.prober == first, "not the prober"
    closed = ask(first, heard=Heard(probe=Sign.ALIVE))
    assert (closed.before, closed.breaker.position) == (Position.HALF_OPEN, Position.CLOSED)
    with ledger.engine.connect() as connection:
        open_for = open_time(connection, "crm", begin)
        assert timedelta(seconds=5) < open_for < timedelta(seconds=60)
        assert open_time(connection, "other", begin) == timedelta(0)
        later = ledger.one("SELECT counterfoil.ledger_time()")
        assert open_time(connection, "crm", later) == timedelta(0), "only what lies after counts"


def test_while_it_is_open_its_time_counts_already(ledger: Bed, ask: Ask_) -> None:
    session = _session(ledger, "a")
    begin = ledger.one("SELECT counterfoil.ledger_time()")
    ask(session, heard=Heard(9))
    ledger.shift(timedelta(minutes=5))
    with ledger.engine.connect() as connection:
        assert timedelta(minutes=4) < open_time(connection, "crm", begin) < timedelta(minutes=6)


def test_where_nothing_changed_an_exchange_writes_nothing(ledger: Bed, ask: Ask_) -> None:
    """A worker asks every second, for ever."""
    session = _session(ledger, "a")
    ask(session, wanted=0)
    places = "SELECT ctid::text FROM counterfoil.sink UNION ALL SELECT ctid::text FROM counterfoil.sink_share"
    before = ledger.rows(places)
    ask(session, wanted=0)
    assert ledger.rows(places) == before
