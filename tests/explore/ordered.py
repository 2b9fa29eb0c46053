"""One entity as core's decisions leave it, beside a sink whose requests may land late: searched whole, step by step.

A request that was sent may be applied at any time until its absence wait is over; a sink that keeps keys applies one of an
operation, any other applies each. Whatever the order, no effect may land behind one of a later operation of the entity (S7), and
no operation may wait without somebody it waits for (L1).
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from counterfoil.core import decisions
from counterfoil.core.decisions import Answered, Move, ordering, verdicts
from counterfoil.core.decisions.admission import may_admit
from counterfoil.core.decisions.ordering import Neighbour, Turn
from counterfoil.core.decisions.people import Grounds
from counterfoil.core.events import EventKind
from counterfoil.core.order import Ordering
from counterfoil.core.outcomes import AttemptOutcome
from counterfoil.core.standing import Rules, Standing
from counterfoil.core.states import FINAL, WAITING, State
from counterfoil.core.verdicts import Mandate, Seen, Verdict
from tests.explore.judging import Violation
from tests.explore.search import Found
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
    replays: int = 0  #: how often a person still replays
    requeues: int = 0  #: of the reconciler, since something was admitted

    def there(self) -> list[tuple[int, Standing]]:
        """The operations that were enqueued, by their positions."""
        return [(position, each) for position, each in enumerate(self.operations, start=1) if each is not None]

    def put(self, position: int, standing: Standing) -> World:
        """With this operation as it stands now."""
        operations = (*self.operations[: position - 1], standing, *self.operations[position:])
        return replace(self, operations=operations)


TurnOf = Callable[[Rules, int, int | None, list[Neighbour]], Turn]
NotAdmissible = Callable[[Rules, Standing, datetime, Turn], Move | None]
Remedied = Callable[[Rules, Standing, Seen, datetime], Move | None]
Step = tuple[str, World]


def not_admissible(rules: Rules, standing: Standing, now: datetime, turn: Turn) -> Move | None:
    """Core's own."""
    return decisions.not_admissible(rules, standing, now, turn=turn)


def remedied(rules: Rules, standing: Standing, seen: Seen, now: datetime) -> Move | None:
    """Core's own, where the reconciler may send again."""
    return verdicts.remedy(rules, Mandate(requeue=True), standing, seen, now=now)


class Search:
    """All worlds that can be reached. The decisions are core's, or have a rule taken out; `remedied` None: no reconciler."""

    def __init__(
        self,
        rules: Rules,
        count: int,
        turn_of: TurnOf = ordering.turn,
        refused: NotAdmissible = not_admissible,
        *,
        replays: int = 0,
        remedied: Remedied | None = None,
    ) -> None:
        self.rules, self.turn_of, self.refused, self.remedied = rules, turn_of, refused, remedied
        mark = 1 if rules.ordering is Ordering.STRICT else None
        self.first = World((None,) * count, mark, replays=replays)
        self.worlds: dict[World, tuple[World, str] | None] = {self.first: None}  #: each with where it came from

    def run(self, most: int = 400_000) -> Found:
        """Every world, up to the first in which an invariant falls."""
        found = Found()
        waiting = deque([self.first])
        while waiting and found.violation is None:
            world = waiting.popleft()
            found.states += 1
            found.reached += Counter(each.state for _, each in world.there())
            for name, then in self.steps(world):
                found.steps += 1
                if then in self.worlds:
                    continue
                assert len(self.worlds) < most
                self.worlds[then] = world, name
                waiting.append(then)
                found.violation = self._fallen(then)
                if found.violation is not None:
                    found.trace = self._trace(then)
                    break
        return found

    def _fallen(self, world: World) -> Violation | None:
        if list(world.landed) != sorted(world.landed):
            return Violation("S7", f"effects landed in the order {world.landed}")
        if world.requeues > len(world.operations):
            return Violation("L1", "it is requeued again and again, and never admitted")
        now = NOW + world.hour * HOUR
        for position, standing in world.there():
            turn = self.turn(world, position)
            if standing.state not in WAITING or self.refused(self.rules, standing, now, turn) is not None:
                continue
            named = turn.behind is not None or (turn.until is not None and turn.until <= now + _LONGEST)
            if not may_admit(self.rules, standing, now, revision=1, turn=turn) and not named:
                return Violation("L1", f"{position} can neither run nor be closed, and waits for nobody")
        return None

    def _trace(self, world: World) -> list[str]:
        names: list[str] = []
        while (came := self.worlds[world]) is not None:
            world, name = came
            names.append(name)
        return names[::-1]

    def turn(self, world: World, position: int) -> Turn:
        others = [Neighbour(at, each) for at, each in world.there() if at != position]
        return self.turn_of(self.rules, position, world.mark, others)

    def steps(self, world: World) -> Iterator[Step]:
        """Everything that can happen next."""
        now = NOW + world.hour * HOUR
        if world.hour < 1:
            old = tuple(one for one in world.flying if one[1] > world.hour)
            yield "the wait passes", replace(world, hour=world.hour + 1, flying=old)
        for position, hour in world.flying:
            rest = _without(world.flying, (position, hour))
            again = self.rules.keyed and position in world.landed
            refused = self.rules.version_guard and any(at > position for at in world.landed)
            landed = world.landed if again or refused else (*world.landed, position)
            yield f"{position} lands", replace(world, landed=landed, flying=rest)
        yield from self._enqueued(world)
        for position, standing in world.there():
            turn = self.turn(world, position)
            if may_admit(self.rules, standing, now, revision=1, turn=turn):
                running = replace(admitted(standing, now), attempt_until=now + self.rules.timeout, session=1)
                yield f"admit {position}", self._admitted(world, position, running)
            yield from self._moved(world, position, standing, turn)
            yield from self._by_others(world, position, standing)
            yield from self._by_a_person(world, position, standing)

    def _enqueued(self, world: World) -> Iterator[Step]:
        """The next operation; versions come in any order."""
        missing = [n for n, each in enumerate(world.operations, start=1) if each is None]
        for position in missing[:1] if self.rules.ordering is Ordering.STRICT else missing:
            yield f"enqueue {position}", world.put(position, replace(NEVER_RUN, number=position))

    def _admitted(self, world: World, position: int, running: Standing) -> World:
        mark = world.mark
        if self.rules.ordering is Ordering.LATEST_WINS:
            mark = position if mark is None else max(mark, position)
        world = replace(world, requeues=0)
        return replace(world.put(position, running), mark=mark, flying=tuple(sorted((*world.flying, (position, world.hour)))))

    def _moved(self, world: World, position: int, standing: Standing, turn: Turn) -> Iterator[Step]:
        """The worker: answers, and what it writes of operations that may not be admitted."""
        now = NOW + world.hour * HOUR
        if standing.state in WAITING:
            move = self.refused(self.rules, standing, now, turn)
            if move is not None:
                yield f"{position} is not admitted: {move.to}", self._after(world, position, move)
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
            then = replace(world, flying=_without(world.flying, mine)) if certainly_not else world
            yield f"{position} answers {outcome}", self._after(then, position, answer)

    def _by_others(self, world: World, position: int, standing: Standing) -> Iterator[Step]:
        """A caller's cancel, and a verdict past every wait."""
        decided = decisions.cancel(standing)
        if isinstance(decided, Move):
            yield f"{position} is cancelled", self._after(world, position, decided)
        if standing.state is not State.AWAITING_CONFIRMATION:
            return
        if position in world.landed:
            yield f"{position} is confirmed", self._after(world, position, _move(State.CONFIRMED, AttemptOutcome.APPLIED))
        elif all(at != position for at, _ in world.flying):
            closed = replace(_move(State.NOT_APPLICABLE, AttemptOutcome.CLOSED), doubt_over=True)
            yield f"{position} is closed", self._after(world, position, closed)
            yield from self._missing(world, position, standing)

    def _missing(self, world: World, position: int, standing: Standing) -> Iterator[Step]:
        """The reconciler, past every wait."""
        if self.remedied is None:
            return
        strict = self.rules.ordering is Ordering.STRICT
        newer = not strict and any(at > position for at, _ in world.there())
        passed = strict and world.mark is not None and position < world.mark
        seen = Seen(Verdict.MISSING, standing.sequence, NOW + 2 * HOUR, newer=newer, passed=passed)
        move = self.remedied(self.rules, standing, seen, NOW + world.hour * HOUR)
        if move is not None:
            then = replace(world, requeues=world.requeues + (move.to is State.RETRY_WAIT))
            yield f"{position} is missing: {move.to}", self._after(then, position, move)

    def _by_a_person(self, world: World, position: int, standing: Standing) -> Iterator[Step]:
        """Who replays, who takes a risk before the wait is over, and who takes one that nobody ever should."""
        if world.risks and standing.state is State.SUCCEEDED and self.rules.ordering is Ordering.STRICT:
            mistaken = replace(_move(State.RETRY_WAIT, AttemptOutcome.DONE), granted=1)
            yield f"{position} is requeued by mistake", self._after(replace(world, risks=world.risks - 1), position, mistaken)
        if world.risks and standing.state is State.AWAITING_CONFIRMATION:
            requeued = replace(_move(State.RETRY_WAIT, AttemptOutcome.PRESUMED_ABSENT), resolved=True, granted=1, risk=True)
            yield f"a person requeues {position}", self._after(replace(world, risks=world.risks - 1), position, requeued)
        if world.replays:
            now = NOW + world.hour * HOUR
            replayed = decisions.replay(self.rules, standing, Grounds.FORCED, replays=0, now=now)
            if isinstance(replayed, Move):
                yield f"a person replays {position}", self._after(replace(world, replays=world.replays - 1), position, replayed)

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


#: Past this, nobody can be waited for because of a request under way.
_LONGEST: Final = timedelta(hours=1)


def ended(world: World) -> bool:
    """Whether nothing is left to do but a person's or the reconciler's part."""
    over = FINAL | {State.SUCCEEDED, State.QUARANTINED}
    return all(each is not None and each.state in over for each in world.operations)


def _move(to: State, outcome: AttemptOutcome) -> Move:
    return Move(to, EventKind.CONFIRMED, "decided", outcome)


def _without(flying: tuple[tuple[int, int], ...], one: tuple[int, int]) -> tuple[tuple[int, int], ...]:
    at = flying.index(one)
    return (*flying[:at], *flying[at + 1 :])
