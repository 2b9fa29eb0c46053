"""H1: every order in which one operation of a Strict entity is settled while the record of the next one is admitted.

Each of the two is a look and a commit. Under the lock of the entity nothing comes between them; without it the search parts them.
What a look says is core's own; once nothing moves any more, the next operation must have run.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import replace
from typing import Final, NamedTuple

from counterfoil.core.decisions import ordering
from counterfoil.core.decisions.ordering import Neighbour
from counterfoil.core.order import Ordering
from counterfoil.core.states import State
from tests.explore.judging import Violation
from tests.explore.search import Found
from tests.support.standings import NOW, OUTSIDE, RUNNING

STRICT: Final = replace(OUTSIDE, ordering=Ordering.STRICT)


class Line(NamedTuple):
    """The first operation runs, the second is queued, its record under way. A look that is not committed yet is remembered."""

    first: State = State.RUNNING
    second: State = State.QUEUED
    records: int = 1  #: of the second, under way
    told: bool = False  #: the second was told to wait: whoever frees the entity sends its record
    settling: bool | None = None  #: what the settling one saw of `told`
    admitting: bool | None = None  #: whether the admitting one saw the entity free


def search(*, locked: bool = True) -> Found:
    """Every state; `locked` False: the entity's row is not locked."""
    found = Found()
    parents: dict[Line, tuple[Line, str] | None] = {Line(): None}
    waiting = deque(parents)
    while waiting and found.violation is None:
        line = waiting.popleft()
        found.states += 1
        steps = [step for step in _steps(line) if not locked or _alone(line, step[1])]
        if not steps and line.second is not State.SUCCEEDED:
            found.violation = Violation("L5", "the second waits, and nobody knows of it")
            found.trace = _trace(parents, line)
        for name, then in steps:
            found.steps += 1
            if then not in parents:
                parents[then] = line, name
                waiting.append(then)
    return found


def _alone(before: Line, after: Line) -> bool:
    """Whether a step leaves at most one look open: the other one waits for the lock."""
    return not (before != after and after.settling is not None and after.admitting is not None)


def _steps(line: Line) -> Iterator[tuple[str, Line]]:
    if line.first is State.RUNNING and line.settling is None:
        yield "settle looks for who waits", line._replace(settling=line.told)
    if line.settling is not None:
        sent = 1 if line.settling and ordering.frees(State.SUCCEEDED) else 0
        yield "settle commits", line._replace(first=State.SUCCEEDED, settling=None, records=line.records + sent, told=False)
    if line.records and line.second is State.QUEUED and line.admitting is None:
        head = 2 if ordering.passes(line.first) else 1
        turn = ordering.turn(STRICT, 2, head, [Neighbour(1, replace(RUNNING, state=line.first))])
        yield "admit looks at the first", line._replace(admitting=turn.free(STRICT, RUNNING, NOW))
    if line.admitting is not None:
        if line.admitting:
            yield "admit commits: it runs", line._replace(second=State.SUCCEEDED, records=line.records - 1, admitting=None)
        else:
            yield "admit commits: told to wait", line._replace(told=True, records=line.records - 1, admitting=None)


def _trace(parents: dict[Line, tuple[Line, str] | None], line: Line) -> list[str]:
    names: list[str] = []
    while (came := parents[line]) is not None:
        line, name = came
        names.append(name)
    return names[::-1]
