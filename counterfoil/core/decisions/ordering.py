"""Order per entity: which operation of an entity may run, which one was overtaken, and which one has to wait for what.

`Strict`: only the first that was not passed runs; whatever makes an operation succeeded or final passes it. `LatestWins`: an
older version is never admitted after a newer one, and a newer one waits for an older one that may have been sent. All facts are
handed in, as they stand under the lock of the entity's row. The statement that admits repeats `Turn.free` (a test holds both
against each other).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final, NamedTuple

from counterfoil.core.order import Ordering
from counterfoil.core.standing import Rules, Standing
from counterfoil.core.states import FINAL, WAITING, State

#: States in which somebody still has to find out, or to decide, what became of an attempt that may have reached the sink.
UNSETTLED: Final = WAITING | {State.AWAITING_CONFIRMATION, State.MANUAL_REVIEW, State.QUARANTINED}
#: Into these no operation of an entity comes free: the one that moves may still be applied, or has not begun.
_HOLDS: Final = frozenset({State.QUEUED, State.RUNNING, State.AWAITING_CONFIRMATION, State.MANUAL_REVIEW})


class Neighbour(NamedTuple):
    """Another operation of the entity. `position` is its number in the entity (`Strict`) or its version (`LatestWins`)."""

    position: int
    standing: Standing
    scheduled: bool = False  #: it must not be admitted yet


# A plain slotted dataclass, not `Value`: one is made for every operation on the hot path, and nobody declares it.
@dataclass(frozen=True, slots=True)
class Turn:
    """What the entity says about one operation that asks to be admitted."""

    passed: bool = False  #: the head has passed it, or a newer version was admitted: it is never sent (again)
    newer: bool = False  #: a newer version waits to be sent (`LatestWins` only)
    behind: int | None = None  #: number of the operation that it waits for
    until: datetime | None = None  #: a request of an operation that is over may still be applied up to then

    def free(self, rules: Rules, standing: Standing, now: datetime) -> bool:
        """Whether the entity lets the operation run now (S7)."""
        return not self.overtakes(standing) and not self.waits(rules, now)

    def overtakes(self, standing: Standing) -> bool:
        """Whether the entity has moved on. What may have been sent is not given up for one that merely waits."""
        return self.passed or (self.newer and not standing.doubtful)

    def waits(self, rules: Rules, now: datetime) -> bool:
        """Whether another operation of the entity must be over first. A version guard refuses an older one whenever it lands."""
        if rules.ordering is Ordering.STRICT and self.behind is not None:
            return True
        return not rules.version_guard and (self.behind is not None or (self.until is not None and self.until > now))


#: Of an operation without an entity, and of a type without an order.
FREE: Final = Turn()


def turn(rules: Rules, position: int, mark: int | None, others: Iterable[Neighbour]) -> Turn:
    """The turn of the operation at `position`. `mark` is the entity row's: the head (`Strict`), the newest version admitted."""
    if rules.ordering is Ordering.STRICT:
        return _strict(rules, position, mark if mark is not None else 1, others)
    return _latest(rules, position, mark, others) if rules.ordering is Ordering.LATEST_WINS else FREE


def _strict(rules: Rules, position: int, head: int, others: Iterable[Neighbour]) -> Turn:
    earlier = sorted((one for one in others if one.position < position), key=lambda one: one.position)
    open_ = [one.standing.number for one in earlier if one.position >= head and not passes(one.standing.state)]
    landed = _landings(rules, [one.standing for one in earlier if one.position < head])
    return Turn(passed=position < head, behind=open_[0] if open_ else None, until=landed)


def _latest(rules: Rules, version: int, newest: int | None, others: Iterable[Neighbour]) -> Turn:
    others = sorted(others, key=lambda one: one.position)
    newer = any(
        one.position > version and one.standing.state in WAITING and not one.scheduled and not one.standing.cancel_asked
        for one in others
    )
    older = [one.standing for one in others if one.position < version]
    holding = [standing.number for standing in older if holds_entity(standing)]
    landed = _landings(rules, [standing for standing in older if standing.state not in UNSETTLED])
    return Turn(newest is not None and newest > version, newer, holding[-1] if holding else None, landed)


def holds_entity(standing: Standing) -> bool:
    """Whether nobody knows yet if an attempt of it is applied, so that a newer version waits for it (H4)."""
    return standing.state is State.RUNNING or (standing.state in UNSETTLED and standing.doubtful_since is not None)


def _landings(rules: Rules, over: Iterable[Standing]) -> datetime | None:
    """When the last request of operations that are over can no longer be applied: after an accepted risk, doubt stays (T13)."""
    ends = [one.attempt_until for one in over if one.doubtful_since is not None and one.attempt_until is not None]
    return max(ends) + rules.absence_wait if ends else None


def passes(to: State) -> bool:
    """Whether a `Strict` operation that comes into this state is passed by the head, for good (T15)."""
    return to is State.SUCCEEDED or to in FINAL


def frees(to: State) -> bool:
    """Whether an operation that comes into this state may let another one of its entity run: that one is told (H1)."""
    return to not in _HOLDS
