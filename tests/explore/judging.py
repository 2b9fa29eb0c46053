"""The invariants, asserted on every state and every step from what is true at the sink, not from what core believes."""

from __future__ import annotations

from typing import NamedTuple

from counterfoil.core.states import EXCEPTIONS, FINAL, WAITING, State
from counterfoil.core.transitions import Actor, is_edge
from tests.explore.configuration import Configuration
from tests.explore.deciding import Deciding
from tests.explore.passing import Nature
from tests.explore.steps import Step
from tests.explore.world import World

#: States that say of the operation: it has an effect.
_AFFIRMS = frozenset({State.SUCCEEDED, State.CONFIRMED})


class Violation(NamedTuple):
    """An invariant that does not hold, and what is wrong."""

    invariant: str
    words: str


class Judge:
    """Asks each invariant of one configuration."""

    def __init__(self, configuration: Configuration, deciding: Deciding) -> None:
        self.deciding = deciding
        self.configuration = configuration
        self.rules = configuration.rules
        self.nature = Nature(configuration)

    def state(self, world: World) -> Violation | None:
        """What must hold of a state of the world."""
        op, sink = world.op, world.sink
        if sink.effects > 1 + world.spent.risks:
            return Violation("S1", f"{sink.effects} effects")
        if op.state in _AFFIRMS and not sink.effects:
            return Violation("S1", f"{op.state} without an effect")
        if (op.state is State.QUARANTINED or op.denied) and sink.effects and self.configuration.denials:
            return Violation("S1", f"{op.state}, and there is an effect")
        if op.tries < 0:
            return Violation("S22", "more tries than there are")
        if op.risk and op.state in WAITING and not op.cancel and not self.deciding.may_admit(op, op.revision):
            return Violation("L1", "a person's requeue leads nowhere")
        return None

    def step(self, before: World, step: Step) -> Violation | None:
        """What must hold of a step."""
        old, new = before.op, step.after.op
        if step.answers not in (0, old.attempt) and old != new._replace(since=old.since, key=old.key, receipt=old.receipt):
            return Violation("S9", f"a stale answer moved {old.state} to {new.state}")
        if old.state is not new.state or old.attempt != new.attempt:
            return self._transition(before, step)
        if old.closed and old != new._replace(since=old.since, admitted=old.admitted):
            return Violation("S3", f"{old.state} is final and changed")
        if new.attempt < old.attempt:
            return Violation("S22", "an attempt number fell")
        return None

    def _transition(self, before: World, step: Step) -> Violation | None:
        old, new = before.op, step.after.op
        if step.who is None or not is_edge(old.state, new.state, step.who):
            return Violation("S3", f"{step.who} moved {old.state} to {new.state}")
        if old.closed or old.state in FINAL:
            return Violation("S3", f"{old.state} is final and was left")
        if step.answers and new.state in _AFFIRMS:
            ran = {one.revision for one in before.requests if one.attempt == step.answers}
            if ran != {old.revision}:
                return Violation("S9", "a receipt of an old revision counted")
        if old.state is State.QUARANTINED and step.who is not Actor.PERSON:
            return Violation("S13", f"{step.who} took it out of quarantine")
        if new.state is State.RUNNING:
            return self._admitted(before, step)
        return self._ended(before, step)

    def _admitted(self, before: World, step: Step) -> Violation | None:
        old, new = before.op, step.after.op
        if new.attempt != old.attempt + 1:
            return Violation("S22", "an attempt number was left out")
        if step.after.requests[-1].revision != new.revision:
            return Violation("S8", "an old revision runs")
        if old.cancel or old.tries <= 0:
            return Violation("S22", "it was cancelled or had no try left")
        if old.risk or self.rules.in_ledger or self.rules.version_guard:
            return None
        there = {one.revision for one in before.requests if (one.pending and not self.nature.overdue(one)) or one.landed}
        if before.sink.effects:
            there.add(before.sink.content)
        if there and not self._kept(before, there):
            return Violation("S10", "a repeat that may double the effect")
        return None

    def _kept(self, before: World, there: set[int]) -> bool:
        """Whether the sink still keeps the key of all that is there or may come, when the new request lands as late as it can."""
        if not self.rules.keyed or there != {before.op.revision}:
            return False
        horizon = self.configuration.horizon
        return horizon is None or all(age + self.configuration.landing < horizon for _, age in before.sink.keys)

    def _ended(self, before: World, step: Step) -> Violation | None:
        op, sink = step.after.op, step.after.sink
        known = step.after.requests if op.closed else before.requests
        lands = any(one.pending and not self.nature.overdue(one) for one in known)
        lands &= any(one.pending for one in step.after.requests)
        denies = op.state is State.QUARANTINED or op.denied
        if denies and self.configuration.denials and (lands or sink.effects):
            return Violation("S11", f"{op.state} while a request is there or may land")
        if op.state is State.COMPENSATING and self.configuration.denials and (lands or not sink.effects):
            return Violation("S11", f"{op.state} while a request may land, or nothing is there")
        if op.state is State.CONFIRMED and sink.content != op.revision:
            return Violation("S2", "confirmed with another content")
        if op.state is State.CONFIRMED and sink.effects != 1 and not before.spent.risks:
            return Violation("S1", f"confirmed with {sink.effects} effects")
        return None


def rests(world: World) -> bool:
    """Whether the operation needs nobody but, at most, a person: final, or on the list of exceptions (L1)."""
    return world.op.closed or world.op.state in FINAL or world.op.state in EXCEPTIONS
