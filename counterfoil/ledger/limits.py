"""What a worker may send to its sinks: one exchange tells the ledger what was heard, and answers shares, tokens and breakers.

Core decides; rows of `sink` are locked in the order of their names, so that every worker's exchange sees the others' whole. It is
called at the pace of a heartbeat and when something is lacking, never for a record.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

from sqlalchemy import Connection

from counterfoil.core import breaker as breakers
from counterfoil.core import shares, tokens
from counterfoil.core.breaker import Breaker, Habits, Heard, Position
from counterfoil.core.shares import Share
from counterfoil.core.sink import in_force
from counterfoil.ledger.arrays import columns
from counterfoil.ledger.statements import limiting as statements

#: Where there are fewer slots than workers, whose turn it is changes so often.
TURN: Final = timedelta(seconds=2)


class Key(NamedTuple):
    """A sink; with a type, the lower limits of that one type at the sink."""

    name: str
    type: str = ""


class Ask(NamedTuple):
    """What one worker has to say about one sink, and what it would like."""

    key: Key
    concurrency: int  #: as declared; the ledger's own setting wins
    per_second: float | None  #: as declared
    in_use: int
    wanted: int  #: calls that it would make if it could, those in flight included
    tokens: int  #: that it would use at once
    heard: Heard = Heard()
    probe_within: timedelta | None = None  #: it has something to probe with, and the probe is over after this


class Granted(NamedTuple):
    """What the worker may do until it asks again."""

    slots: int
    concurrency: int  #: of all workers
    tokens: int | None  #: None: there is no rate
    next_token: timedelta
    breaker: Breaker
    before: Position  #: where the breaker stood before this exchange


def enter(connection: Connection, keys: Sequence[Key]) -> None:
    """Make rows for sinks that were never seen, and forget the shares of sessions that are gone."""
    connection.execute(statements.ENSURE, columns(statements.KEY, sorted(keys)))
    connection.execute(statements.FORGET_DEAD)


def exchange(connection: Connection, session: int, asks: Sequence[Ask], habits: Habits) -> Mapping[Key, Granted]:
    """Tell and be told. Sinks without a row are left out: `enter` makes it."""
    keyed = columns(statements.KEY, [ask.key for ask in asks])
    rows: dict[Key, Any] = {Key(row.name, row.type): row for row in connection.execute(statements.LOCK_SINKS, keyed)}
    mine, held = _shares(connection, session, keyed)
    granted: dict[Key, Granted] = {}
    sinks, changed = [], []
    for ask in asks:
        if (row := rows.get(ask.key)) is None:
            continue
        one, spent_until = _granted(row, session, ask, held.get(ask.key, ()), habits)
        granted[ask.key] = one
        if (one.breaker, spent_until) != (_breaker(row), row.spent_until):
            sinks.append((*ask.key, spent_until, *_columns(one.breaker)))
            _note_outage(connection, ask.key, one, row.now)
        share = Share(session, one.slots, ask.in_use, ask.wanted)
        if mine.get(ask.key) != share:
            changed.append((*ask.key, share.slots, share.in_use, share.wanted))
    if sinks:
        connection.execute(statements.KEEP_SINKS, columns(statements.SINK, sinks))
    if changed:
        connection.execute(statements.KEEP_SHARES, {**columns(statements.SHARE, changed), "k_session": session})
    return granted


def _shares(connection: Connection, session: int, keyed: Mapping[str, Any]) -> tuple[dict[Key, Share], dict[Key, list[Share]]]:
    """The session's own shares as it last had them, and those of the other living ones."""
    mine: dict[Key, Share] = {}
    held: dict[Key, list[Share]] = {}
    for name, type_, *share in connection.execute(statements.SHARES, {**keyed, "k_session": session}):
        one = Share(*share)
        if one.session == session:
            mine[Key(name, type_)] = one
        else:
            held.setdefault(Key(name, type_), []).append(one)
    return mine, held


def _granted(row: Any, session: int, ask: Ask, others: Sequence[Share], habits: Habits) -> tuple[Granted, datetime | None]:
    now: datetime = row.now
    concurrency, per_second = in_force(row.concurrency, row.per_second, ask.concurrency, ask.per_second)
    before = _breaker(row)
    breaker = breakers.hear(before, session, ask.heard, habits, now)
    if ask.probe_within is not None:
        breaker = breakers.claim(breaker, session, ask.probe_within, now)
    turn = int(now.timestamp() / TURN.total_seconds())
    slots = shares.share(concurrency, Share(session, 0, ask.in_use, ask.wanted), others, turn)
    if per_second is None:
        return Granted(slots, concurrency, None, timedelta(0), breaker, before.position), row.spent_until
    block = tokens.take(row.spent_until, per_second, ask.tokens, now)
    spent_until = block.spent_until if block.tokens else row.spent_until
    return Granted(slots, concurrency, block.tokens, block.next_in, breaker, before.position), spent_until


def _breaker(row: Any) -> Breaker:
    return Breaker(Position(row.position), row.failures, row.openings, row.opened_at, row.until, row.prober)


def _columns(breaker: Breaker) -> tuple[Any, ...]:
    return (
        breaker.position.value,
        breaker.failures,
        breaker.openings,
        breaker.opened_at,
        breaker.until,
        breaker.prober,
    )


def _note_outage(connection: Connection, key: Key, granted: Granted, now: datetime) -> None:
    position, before = granted.breaker.position, granted.before
    if before is Position.CLOSED and position is not Position.CLOSED:
        connection.execute(statements.BEGIN_OUTAGE, {"name": key.name, "opened_at": granted.breaker.opened_at})
    elif before is not Position.CLOSED and position is Position.CLOSED:
        connection.execute(statements.END_OUTAGE, {"name": key.name, "closed_at": now})


def open_time(connection: Connection, name: str, since: datetime) -> timedelta:
    """For how long the sink's breaker was open since then: time that counts for no deadline."""
    found: timedelta = connection.execute(statements.OPEN_TIME, {"name": name, "since": since}).scalar_one()
    return found
