"""What happens by itself: time passes, requests land, and what nobody can hear or tell any more is forgotten.

The sink keeps what it declares, except where a configuration plants a late landing or a stall.
"""

from __future__ import annotations

from counterfoil.core.states import State
from tests.explore.configuration import TICK, Configuration
from tests.explore.world import MOST_EFFECTS, Op, Request, Sink, World


class Nature:
    """Time and the sink, for one configuration."""

    def __init__(self, configuration: Configuration) -> None:
        self.configuration = configuration
        self.rules = configuration.rules
        self._landing = configuration.landing
        self._oldest = configuration.oldest
        self._horizon = configuration.horizon

    def tick(self, world: World) -> World:
        """One tick later."""
        requests = tuple(self._older(one, world.op) for one in world.requests)
        return self.tidy(world._replace(op=self._aged(world.op), requests=requests, sink=self._later(world.sink)))

    def _aged(self, op: Op) -> Op:
        """Ages are capped, and two that differ stay different: core tells the first doubtful attempt from the latest by them."""
        if op.admitted is None:
            return op if op.since is None else op._replace(since=min(op.since + 1, self._oldest))
        if op.since is None or op.since == op.admitted:
            admitted = min(op.admitted + 1, self._oldest - 1)
            return op._replace(admitted=admitted, since=None if op.since is None else admitted)
        return op._replace(admitted=min(op.admitted + 1, self._oldest - 1), since=min(op.since + 1, self._oldest))

    def _older(self, request: Request, op: Op) -> Request:
        if not request.pending:
            return request
        if request.age < self._landing:
            return request._replace(age=request.age + 1)
        late = self.configuration.late and (request.attempt == op.attempt or (op.admitted or 0) < self._landing)
        if late or self.configuration.heard:
            return request._replace(age=self._landing + 1)  # overdue: it may still land beside a later attempt
        return request._replace(age=0, pending=False)

    def _later(self, sink: Sink) -> Sink:
        if self._horizon is None:
            return sink._replace(hidden=max(0, sink.hidden - 1))
        keys = tuple((revision, age + 1) for revision, age in sink.keys if age + 1 < self._horizon)
        return sink._replace(keys=keys, hidden=max(0, sink.hidden - 1))

    def overdue(self, request: Request) -> bool:
        """Whether it is past what the sink declares."""
        return request.age > self._landing

    def may_land(self, world: World, request: Request) -> bool:
        """Whether the request may be applied now."""
        if not request.pending:
            return False
        if not self.overdue(request):
            return True
        if self.configuration.heard:
            return request.attempt == world.op.attempt and world.spent.late < self.configuration.heard
        later = request.attempt < world.op.attempt and (world.op.admitted or 0) <= self._landing
        return later and world.spent.late < self.configuration.late

    def land(self, world: World, request: Request) -> World:
        """The sink applies it, or knows its key, or its version, or what is there already."""
        spent = world.spent._replace(late=world.spent.late + 1) if self.overdue(request) else world.spent
        landed = request._replace(age=0, landed=True, pending=False)
        requests = tuple(landed if one is request else one for one in world.requests)
        return self.tidy(world._replace(requests=requests, sink=self.applied(world.sink, request.revision), spent=spent))

    def applied(self, sink: Sink, revision: int) -> Sink:
        """The sink after a request of this revision."""
        rules = self.rules
        if rules.version_guard and sink.effects:
            return sink
        if rules.by_nature_unique:
            if sink.content == revision:
                return sink
        elif rules.keyed:
            if any(key == revision for key, _ in sink.keys):
                return sink
            sink = sink._replace(keys=tuple(sorted((*sink.keys, (revision, 0)))))
        hidden = 0 if rules.in_ledger else rules.read_lag // TICK
        return sink._replace(effects=min(sink.effects + 1, MOST_EFFECTS), content=revision, hidden=hidden)

    def tidy(self, world: World) -> World:
        """The same world without what can make no difference."""
        op = world.op
        if op.closed:
            requests = tuple(one._replace(alive=False, landed=False) for one in world.requests if one.pending)
            return world._replace(requests=requests, mind=None)
        requests = tuple(one for one in world.requests if one.pending or self._may_be_heard(op, one))
        mind = world.mind
        if mind is not None and mind.read is None and op.state not in _READ:
            mind = None
        return world._replace(requests=requests, mind=mind)

    def _may_be_heard(self, op: Op, request: Request) -> bool:
        """Whether something may still be heard of an attempt whose request is no more on its way. Of a stale one, its receipt."""
        if request.alive:
            return request.landed or request.attempt == op.attempt
        return request.landed and self.configuration.callback and not self.rules.in_ledger


#: States in which somebody may have read the sink and not acted yet.
_READ = frozenset({State.AWAITING_CONFIRMATION, State.SUCCEEDED, State.MANUAL_REVIEW})
