"""One state of the searched world: the operation's row, attempts, the sink, what somebody read and has not acted on yet.

Plain tuples of small numbers, so that a state is its own key. Time is an age in ticks, capped where nothing can tell it from an
older one. Nothing is decided here.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from counterfoil.core.outcomes import AttemptOutcome
from counterfoil.core.states import State
from counterfoil.core.verdicts import Verdict


class Op(NamedTuple):
    """The row of `state`; instants as ages in ticks."""

    state: State
    attempt: int
    tries: int
    revision: int
    outcome: AttemptOutcome | None
    since: int | None  #: age of the first doubtful attempt's admission
    key: tuple[int, int] | None  #: its revision and generation
    unresolved: bool
    admitted: int | None  #: age of the latest admission
    cancel: bool
    risk: bool
    closed: bool  #: final: no due time
    denied: bool  #: not_applicable with the claim that there is no effect
    receipt: bool = False  #: a receipt is saved or kept


class Request(NamedTuple):
    """One attempt: what became of its request, and whether its worker still has an answer to give."""

    attempt: int
    revision: int
    age: int  #: since admission; kept only while it may still land
    landed: bool
    pending: bool  #: sent or about to be, and not landed
    alive: bool  #: its worker has not answered


class Sink(NamedTuple):
    """The other system, with its journal as two numbers."""

    effects: int
    content: int  #: revision that was applied last; 0: none
    keys: tuple[tuple[int, int], ...]  #: revision and age of each key that it keeps
    hidden: int  #: ticks for which a read may still miss the last effect


class Mind(NamedTuple):
    """What the reconciler, or a person in review, has read and not acted on."""

    verdict: Verdict
    past: bool  #: asked past the absence wait
    read: Op | None = None  #: the row that was read, kept only where decisions on an older sequence are let through


class Spent(NamedTuple):
    """How often the world did what it may do only so often."""

    not_sent: int = 0
    risks: int = 0  #: requeues at a person's risk
    replays: int = 0
    looks: int = 0  #: "look first"
    late: int = 0  #: landings later than the sink declares


class World(NamedTuple):
    """All of it. `published` is a bit for each revision whose record is in the topic."""

    op: Op
    requests: tuple[Request, ...]
    sink: Sink
    mind: Mind | None
    published: int
    spent: Spent


#: No sink doubles an effect more often than this before somebody notices.
MOST_EFFECTS: Final = 3


def queued(tries: int) -> World:
    """An operation that its caller has just committed."""
    op = Op(State.QUEUED, 0, tries, 1, None, None, None, False, None, False, False, False, False)
    return World(op, (), Sink(0, 0, (), 0), None, 0, Spent())
