"""H2: every order in which three state rows of one key can be sent, appended, lost and reported, with the relay's real rule.

The topic is compacted: the last record wins. Once nothing waits any more, that must be the last row.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Final

from counterfoil.streams.relay.key_order import KeyOrder
from tests.explore.judging import Violation
from tests.explore.search import Found

ROWS: Final = 3
TIMEOUTS: Final = 2


@dataclass(eq=False)
class Row:
    """A row in flight, as the relay and the broker see it."""

    id: int
    key: bytes | None = b"operation"
    void: bool = False
    appended: bool = False


class Careless(KeyOrder[Row]):
    """The rule removed: every acknowledgement counts at once, and no row waits for another."""

    def acknowledged(self, row: Row) -> list[Row]:
        self._chains[row.key].remove(row)
        return [row]

    def failed(self, row: Row, *, alone: bool = False) -> list[Row]:
        self._chains[row.key].remove(row)
        return []

    def may_send(self, key: bytes | None) -> bool:
        return key is not None


@dataclass
class Relay:
    """What waits, what is in flight, what is noted, and the topic's last record of the key."""

    order: KeyOrder[Row]
    waiting: list[int] = field(default_factory=lambda: list(range(1, ROWS + 1)))
    flight: list[Row] = field(default_factory=list)
    noted: set[int] = field(default_factory=set)
    last: int = 0
    timeouts: int = 0

    def key(self) -> tuple[object, ...]:
        """All that can make a difference."""
        rows = tuple((row.id, row.void, row.appended, self._early(row)) for row in self.flight)
        return tuple(self.waiting), rows, frozenset(self.noted), self.last, self.timeouts, self.order.may_send(b"operation")

    def _early(self, row: Row) -> bool:
        return id(row) in self.order._early

    def back(self, row: Row) -> None:
        """It has to be sent again, in its place."""
        self.waiting = sorted({*self.waiting, row.id})


def search(careless: bool = False) -> Found:
    """Every reachable state; the violation, if there is one, with its trace."""
    first = Relay(Careless() if careless else KeyOrder[Row]())
    found = Found()
    queue: deque[tuple[Relay, list[str]]] = deque([(first, [])])
    known = {first.key()}
    while queue:
        relay, trace = queue.popleft()
        found.states += 1
        if not relay.waiting and not relay.flight and relay.last != ROWS:
            found.violation, found.trace = Violation("S16", f"the topic ends with row {relay.last}"), trace
            return found
        for name, after in _steps(relay):
            found.steps += 1
            if (key := after.key()) not in known:
                known.add(key)
                queue.append((after, [*trace, name]))
    return found


def _steps(relay: Relay) -> Iterator[tuple[str, Relay]]:
    if relay.waiting and relay.order.may_send(b"operation"):
        after = _copied(relay)
        row = Row(after.waiting.pop(0))
        after.order.sent(row)
        after.flight.append(row)
        yield f"send {row.id}", after
    for place, row in enumerate(relay.flight):
        if not row.appended and all(one.appended for one in relay.flight[:place]):
            after = _copied(relay)
            after.flight[place].appended = True
            after.last = row.id
            yield f"append {row.id}", after
        if row.appended:
            yield f"{row.id} acknowledged", _reported(relay, place)
        if relay.timeouts < TIMEOUTS:
            yield f"{row.id} times out", _timed_out(relay, place)


def _reported(relay: Relay, place: int) -> Relay:
    after = _copied(relay)
    row = after.flight[place]
    was_void = row.void
    counted = after.order.acknowledged(row)
    after.noted |= {one.id for one in counted}
    if was_void:
        after.back(row)
    if was_void or row in counted:
        after.flight = [one for one in after.flight if one is not row and one not in counted]
    return after


def _timed_out(relay: Relay, place: int) -> Relay:
    """The broker did not say; what was not appended by then never is."""
    after = _copied(relay)
    row = after.flight[place]
    freed = after.order.failed(row)
    after.timeouts += 1
    for one in (row, *freed):
        after.back(one)
    after.flight = [one for one in after.flight if one is not row and one not in freed]
    return after


def _copied(relay: Relay) -> Relay:
    """A copy whose rule knows its own rows: it remembers them by identity."""
    after = deepcopy(relay)
    early = {place for place, row in enumerate(relay.flight) if id(row) in relay.order._early}
    after.order._early = {id(after.flight[place]) for place in early}
    return after
