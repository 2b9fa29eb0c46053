"""Breadth first over every reachable state; then liveness, backwards from all that rests.

A trace is the shortest one there is: states are taken in the order in which they were found.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field

from counterfoil.core.states import State
from counterfoil.core.transitions import Actor
from tests.explore.configuration import Configuration
from tests.explore.deciding import Core
from tests.explore.judging import Judge, Violation, rests
from tests.explore.steps import Steps
from tests.explore.world import World, queued


@dataclass
class Found:
    """What one search came to."""

    states: int = 0
    steps: int = 0
    violation: Violation | None = None
    trace: list[str] = field(default_factory=list)
    reached: Counter[State] = field(default_factory=Counter)  #: so that no state of the table was left out in silence
    edges: set[tuple[State, State, Actor]] = field(default_factory=set)  #: rows of the table that were taken


#: Says whether a violation is the one that is looked for.
Wanted = Callable[[Violation], bool]


def anything(violation: Violation) -> bool:
    """The first violation ends the search."""
    return bool(violation.invariant)


class Search:
    """One search of one configuration; keeps how each state was reached, and from where on the system's own steps lead."""

    def __init__(self, configuration: Configuration, core: Core, wanted: Wanted = anything) -> None:
        self.steps = Steps(configuration, core)
        self.judge = Judge(configuration, self.steps.deciding)
        self.wanted = wanted
        self.found = Found()
        self._parents: dict[World, tuple[World, str] | None] = {}
        self._sources: dict[World, list[World]] = {}

    def run(self, limit: int = 5_000_000) -> Found:
        """Everything that can be reached, up to the first violation that is wanted."""
        first = queued(self.steps.rules.max_tries)
        self._parents[first] = None
        queue = deque([first])
        while queue and self.found.violation is None:
            world = queue.popleft()
            self.found.states += 1
            self.found.reached[world.op.state] += 1
            self._expand(world, queue)
            if self.found.states > limit:
                raise RuntimeError("the search does not end: a number in the world grows without bound")
        if self.found.violation is None:
            self._liveness()
        return self.found

    def _expand(self, world: World, queue: deque[World]) -> None:
        for step in self.steps.of(world):
            self.found.steps += 1
            after = step.after
            if step.who is not None and after.op.state is not world.op.state:
                self.found.edges.add((world.op.state, after.op.state, step.who))
            violation = self.judge.step(world, step) or (None if after in self._parents else self.judge.state(after))
            if violation is not None and self.wanted(violation):
                self._parents.setdefault(after, (world, step.name))
                self._end(violation, [*self.trace(world), step.name])
                return
            if after not in self._parents:
                self._parents[after] = (world, step.name)
                queue.append(after)
            if step.system:
                self._sources.setdefault(after, []).append(world)

    def _liveness(self) -> None:
        """L1: from every state the system's own steps lead to one that rests."""
        good = deque(world for world in self._parents if rests(world))
        reached = set(good)
        while good:
            for source in self._sources.get(good.popleft(), ()):
                if source not in reached:
                    reached.add(source)
                    good.append(source)
        for world in self._parents:
            if world not in reached:
                violation = Violation("L1", f"no road leads on from {world.op.state}")
                if self.wanted(violation):
                    self._end(violation, self.trace(world))
                return

    def _end(self, violation: Violation, trace: list[str]) -> None:
        self.found.violation, self.found.trace = violation, trace

    def trace(self, world: World) -> list[str]:
        """The steps that lead to a state."""
        names: list[str] = []
        parent = self._parents[world]
        while parent is not None:
            world, name = parent
            names.append(name)
            parent = self._parents[world]
        return names[::-1]
