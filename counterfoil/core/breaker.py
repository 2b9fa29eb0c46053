"""The breaker of one sink: what opens it, who may probe, what closes it. Pure; time is handed in.

It opens when calls of several operations in a row, on whichever workers, were answered as a sink that is down answers, and none
was answered otherwise in between. While it is open nothing is sent, so an outage spends no tries. Then one call of one session
probes: a sign of life closes it, another failure waits twice as long.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final, NamedTuple

from counterfoil.core.backoff import ceiling
from counterfoil.core.decisions import Answered
from counterfoil.core.outcomes import AttemptOutcome
from counterfoil.core.reasons import Reason

#: The longest wait between two probes.
LONGEST: Final = timedelta(minutes=1)


class Position(StrEnum):
    """Where a breaker stands."""

    CLOSED = "closed"  #: calls are made
    OPEN = "open"  #: none is
    HALF_OPEN = "half_open"  #: one session makes one


class Sign(StrEnum):
    """What one answer says about the sink itself."""

    ALIVE = "alive"  #: it spoke to us: done, refused for good, or told when to come back
    DOWN = "down"  #: as a sink answers that is not there
    NOTHING = "nothing"  #: it was not asked, or the answer is about our own code


@dataclass(frozen=True, slots=True)
class Breaker:
    """One row of the ledger's `sink`. Instants are the ledger's."""

    position: Position = Position.CLOSED
    failures: int = 0  #: operations in a row without a sign of life
    openings: int = 0  #: probes that failed since it opened, the opening included
    opened_at: datetime | None = None  #: since when nothing is sent; kept while it probes
    until: datetime | None = None  #: open: nobody probes before; half open: the probe counts as lost after
    prober: int | None = None  #: the session whose call probes


class Heard(NamedTuple):
    """What one session heard of a sink since it last said so."""

    failures: int = 0  #: operations that failed since the last sign of life, none of them told before
    alive: bool = False  #: there was a sign of life, before those failures
    probe: Sign | None = None  #: what its own probing call came to


class Habits(NamedTuple):
    """An installation's choice."""

    after: int  #: operations that fail in a row
    wait: timedelta  #: before the first probe; doubled with each that fails, up to LONGEST


_OF_THE_LINE: Final = frozenset(
    {
        Reason.TIMEOUT.value,
        Reason.CONNECTION_LOST.value,
        Reason.UNCERTAIN_ANSWER.value,
        Reason.UNCLASSIFIED_EXCEPTION.value,  # clients' own classes of a lost connection, where nobody sorted them
    }
)


def sign(answered: Answered) -> Sign:
    """What an answer says about its sink. A `Temporary` with `retry_after` is one record's own business: the sink spoke."""
    match answered.outcome:
        case AttemptOutcome.DONE | AttemptOutcome.PERMANENT:
            return Sign.ALIVE
        case AttemptOutcome.TEMPORARY:
            return Sign.DOWN if answered.retry_after is None else Sign.ALIVE
        case AttemptOutcome.UNCERTAIN if answered.reason in _OF_THE_LINE:
            return Sign.DOWN
    return Sign.NOTHING


def hear(breaker: Breaker, session: int, heard: Heard, habits: Habits, now: datetime) -> Breaker:
    """What a session's report makes of the breaker. Calls that began before it opened change nothing while it is open."""
    match breaker.position:
        case Position.CLOSED:
            failures = heard.failures + (0 if heard.alive else breaker.failures)
            if failures >= habits.after:
                return Breaker(Position.OPEN, failures, 1, now, now + habits.wait)
            return replace(breaker, failures=failures)
        case Position.HALF_OPEN if heard.probe is not None and breaker.prober == session:
            return _probed(breaker, heard.probe, habits, now)
    return breaker


def _probed(breaker: Breaker, probe: Sign, habits: Habits, now: datetime) -> Breaker:
    if probe is Sign.ALIVE:
        return Breaker()
    again = replace(breaker, position=Position.OPEN, prober=None)
    if probe is Sign.NOTHING:
        return replace(again, until=now)
    openings = breaker.openings + 1
    wait = timedelta(seconds=ceiling(openings, habits.wait.total_seconds(), max(LONGEST, habits.wait).total_seconds()))
    return replace(again, openings=openings, until=now + wait)


def claim(breaker: Breaker, session: int, within: timedelta, now: datetime) -> Breaker:
    """The breaker with this session as its prober, where it is time for a probe or the prober's is lost; else as it was."""
    waits = breaker.position is not Position.CLOSED and breaker.until is not None
    if not waits or breaker.until is None or now < breaker.until:
        return breaker
    return replace(breaker, position=Position.HALF_OPEN, prober=session, until=now + within)
