"""One entity as core's decisions leave it, beside a sink whose requests may land late: searched whole, step by step.

A request that was sent may be applied at any time until its absence wait is over; a sink that keeps keys applies one of an
operation, any other applies each. Whatever the order, no effect may land behind one of a later operation of the entity (S7).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import timedelta

from counterfoil.core import decisions
from counterfoil.core.decisions import Answered, Move, ordering
from counterfoil.core.decisions.admission import may_admit
from counterfoil.core.decisions.ordering import Neighbour, Turn
from counterfoil.core.events import EventKind
from counterfoil.core.order import Ordering
from counterfoil.core.outcomes import AttemptOutcome
from counterfoil.core.standing import Rules, Standing
from counterfoil.core.states import FINAL, WAITING, State
from tests.support.standings import NOW, RUNNING, admitted, after

HOUR = timedelta(hours=1)
NEVER_RUN = replace(
    RUNNING,
    state=State.QUEUED,
    sequence=0,
    attempt=0,
    tries_left=2,
    outcome=None,
    admitted_at=None,
    attempt_until=None,
    session=None,
)


@dataclass(frozen=True)
class World:
    """Operations at positions 1, 2, … (None: not enqueued yet); `mark` is the entity row's; `flying` are requests, each with
    the hour it was sent in."""

    operations: tuple[Standing | None, ...]
    mark: int | None
    flying: tuple[tuple[int, int], ...] = ()
    landed: tuple[int, ...] = ()  #: positions, in the order in which their effects came to be
    hour: int = 0
    risks: int = 1  #: how often a person still accepts a risk

    def there(self) -> list[tuple[int, Standing]]:
        """The operations that were enqueued, by their positions."""
        return [(position, each) for position, each in enumerate(self.operations, start=1) if each is not None]

    def put(self, position: int, standing: Standing) -> World:
        """With this operation as it stands now."""
        operations = (*self.operations[: position - 1], standing, *self.operations[position:])
        return replace(self, operations=operations)


TurnOf = Callable[[Rules, int, int | None, list[Neighbour]], Turn]


class Search:
    """All worlds that can be reached. `turn_of` is core's, or one with a rule taken out."""

    def __init__(self, rules: Rules, count: int, turn_of: TurnOf = ordering.turn) -> None:
        self.rules = rules
        self.turn_of = turn_of
        mark = 1 if rules.ordering is Ordering.STRICT else None
        self.first = World((None,) * count, mark)
        self.violations: list[tuple[int, ...]] = []

    def run(self, most: int = 400_000) -> set[World]:
        """Every world; those whose effects went backwards are in `violations`, and are not gone on from."""
        seen = {self.first}
        waiting = [self.first]
        while waiting:
            for world in self.steps(waiting.pop()):
                if world in seen:
                    continue
                assert len(seen) < most
                seen.add(world)
                if list(world.landed) == sorted(world.landed):
                    waiting.append(world)
                else:
                    self.violations.append(world.landed)
        return seen

    def turn(self, world: World, position: int) -> Turn:
        others = [Neighbour(at, each) for at, each in world.there() if at != position]
        return self.turn_of(self.rules, position, world.mark, others)

    def steps(self, world: World) -> Iterator[World]:
        now = NOW + world.hour * HOUR
        if world.hour < 1:
            yield replace(world, hour=world.hour + 1, flying=tuple(one for one in world.flying if one[1] > world.hour))
        for position, hour in world.flying:
            rest = _without(world.flying, (position, hour))
            again = self.rules.keyed and position in world.landed
            yield replace(world, landed=world.landed if again else (*world.landed, position), flying=rest)
        yield from self._enqueued(world)
        for position, standing in world.there():
            turn = self.turn(world, position)
            if may_admit(self.rules, standing, now, revision=1, turn=turn):
                running = replace(admitted(standing, now), attempt_until=now + self.rules.timeout, session=1)
                yield self._admitted(world, position, running)
            yield from self._moved(world, position, standing, turn)
            yield from self._by_others(world, position, standing)

    def _enqueued(self, world: World) -> Iterator[World]:
        """The next operation; versions come in any order."""
        missing = [n for n, each in enumerate(world.operations, start=1) if each is None]
        for position in missing[:1] if self.rules.ordering is Ordering.STRICT else missing:
            yield world.put(position, replace(NEVER_RUN, number=position))

    def _admitted(self, world: World, position: int, running: Standing) -> World:
        mark = world.mark
        if self.rules.ordering is Ordering.LATEST_WINS:
            mark = position if mark is None else max(mark, position)
        return replace(world.put(position, running), mark=mark, flying=tuple(sorted((*world.flying, (position, world.hour)))))

    def _moved(self, world: World, position: int, standing: Standing, turn: Turn) -> Iterator[World]:
        """The worker: answers, and what it writes of operations that may not be admitted."""
        now = NOW + world.hour * HOUR
        if standing.state in WAITING:
            move = decisions.not_admissible(self.rules, standing, now, turn=turn)
            if move is not None:
                yield self._after(world, position, move)
        if standing.state is not State.RUNNING:
            return
        mine = (position, world.hour)
        answers = [AttemptOutcome.UNCERTAIN]
        if position in world.landed:
            answers.append(AttemptOutcome.DONE)
        if mine in world.flying:
            answers += [AttemptOutcome.TEMPORARY, AttemptOutcome.PERMANENT]
        for outcome in answers:
            answered = Answered(standing.attempt, outcome, "said")
            answer = decisions.settle(self.rules, standing, answered, now=now, jitter=0.5, sampled=False)
            assert isinstance(answer, Move)
            certainly_not = outcome in (AttemptOutcome.TEMPORARY, AttemptOutcome.PERMANENT)
            yield self._after(replace(world, flying=_without(world.flying, mine)) if certainly_not else world, position, answer)

    def _by_others(self, world: World, position: int, standing: Standing) -> Iterator[World]:
        """A caller's cancel, a verdict past every wait, a person who takes a risk before that, and one who never should have."""
        if world.risks and standing.state is State.SUCCEEDED and self.rules.ordering is Ordering.STRICT:
            mistaken = replace(_move(State.RETRY_WAIT, AttemptOutcome.DONE), granted=1)
            yield self._after(replace(world, risks=world.risks - 1), position, mistaken)
        decided = decisions.cancel(standing)
        if isinstance(decided, Move):
            yield self._after(world, position, decided)
        if standing.state is not State.AWAITING_CONFIRMATION:
            return
        if position in world.landed:
            yield self._after(world, position, _move(State.CONFIRMED, AttemptOutcome.APPLIED))
        elif all(at != position for at, _ in world.flying):
            yield self._after(world, position, replace(_move(State.NOT_APPLICABLE, AttemptOutcome.CLOSED), doubt_over=True))
        if world.risks:
            requeued = replace(_move(State.RETRY_WAIT, AttemptOutcome.PRESUMED_ABSENT), resolved=True, granted=1, risk=True)
            yield self._after(replace(world, risks=world.risks - 1), position, requeued)

    def _after(self, world: World, position: int, move: Move) -> World:
        """The move is written, and the head moved in the same transaction."""
        before = world.operations[position - 1]
        assert before is not None
        standing = replace(after(before, move), session=None)
        world = world.put(position, standing)
        if self.rules.ordering is not Ordering.STRICT or not ordering.passes(standing.state):
            return world
        head = next((at for at, each in world.there() if not ordering.passes(each.state)), position + 1)
        assert world.mark is not None
        return replace(world, mark=max(world.mark, head))


def ended(world: World) -> bool:
    """Whether nothing is left to do but a person's or the reconciler's part."""
    over = FINAL | {State.SUCCEEDED, State.QUARANTINED}
    return all(each is not None and each.state in over for each in world.operations)


def _move(to: State, outcome: AttemptOutcome) -> Move:
    return Move(to, EventKind.CONFIRMED, "decided", outcome)


def _without(flying: tuple[tuple[int, int], ...], one: tuple[int, int]) -> tuple[tuple[int, int], ...]:
    at = flying.index(one)
    return (*flying[:at], *flying[at + 1 :])
