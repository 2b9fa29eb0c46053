"""Every step that can follow a state of the world: the relay, two workers, the sweepers, the sink, the reconciler, people.

A step asks the real core what is written and writes that. Steps of the system are told from misfortune and from people: liveness
may rest on the former only.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from counterfoil.core.outcomes import AttemptOutcome
from counterfoil.core.states import WAITING, State
from counterfoil.core.transitions import Actor
from counterfoil.core.verdicts import Verdict
from tests.explore.configuration import Configuration
from tests.explore.deciding import Core, Deciding
from tests.explore.passing import Nature
from tests.explore.world import Mind, Request, World
from tests.explore.writing import Decision, admitted


class Step(NamedTuple):
    """What happened, by whom (None: nature), whether the system does it by itself in the end, and the world after it."""

    name: str
    who: Actor | None
    system: bool
    after: World
    answers: int = 0  #: attempt whose answer it is; 0: of none


_NOT_LANDED = (AttemptOutcome.NOT_SENT, AttemptOutcome.TEMPORARY, AttemptOutcome.PERMANENT, AttemptOutcome.UNCERTAIN)
_LANDED = (AttemptOutcome.DONE, AttemptOutcome.UNCERTAIN)


class Steps:
    """The steps of one configuration with one core."""

    def __init__(self, configuration: Configuration, core: Core) -> None:
        self.configuration = configuration
        self.rules = configuration.rules
        self.core = core
        self.deciding = Deciding(configuration, core)
        self.nature = Nature(configuration)
        self._people = _People(self)
        self._parts: tuple[Callable[[World, list[Step]], None], ...] = (
            self._time,
            self._relay,
            self._admit,
            self._answers,
            self._callbacks,
            self._sweep,
            self._reconcile,
            self._people.act,
        )

    def of(self, world: World) -> list[Step]:
        """All of them; none leaves the world as it was."""
        out: list[Step] = []
        for part in self._parts:
            part(world, out)
        return [step for step in out if step.after != world]

    def write(self, world: World, decision: Decision) -> World | None:
        """The world after a decision was saved; whatever somebody had read is out of date then."""
        if decision.op is None:
            return None
        mind = self._read(world) if decision.moved or decision.applied else world.mind
        return world._replace(op=decision.op, mind=mind)

    def _read(self, world: World) -> Mind | None:
        """What is left in somebody's mind once the row has moved: nothing that could still be written."""
        mind = world.mind
        if mind is None or self.core.sequence_checked:
            return None
        return mind._replace(read=mind.read or world.op)

    def add(self, out: list[Step], step: tuple[str, Actor, bool], world: World, decision: Decision, answers: int = 0) -> None:
        """A step that writes a decision, where there is one."""
        after = self.write(world, decision)
        if after is not None:
            out.append(Step(*step, self.nature.tidy(after), answers))

    # -- by itself

    def _time(self, world: World, out: list[Step]) -> None:
        out.append(Step("a tick passes", None, True, self.nature.tick(world)))
        for request in world.requests:
            if self.nature.may_land(world, request):
                late = " late" if self.nature.overdue(request) else ""
                after = self.nature.land(world, request)
                if late and self.configuration.heard:
                    decision = self.deciding.recorded(world.op, request.attempt)
                    step = (f"{request.attempt} lands late and is heard", Actor.CALLBACK, False)
                    self.add(out, step, after, decision, request.attempt)
                else:
                    out.append(Step(f"{request.attempt} lands{late}", None, not late, after))

    def _relay(self, world: World, out: list[Step]) -> None:
        bit = 1 << world.op.revision
        if not world.published & bit and world.op.state in WAITING:
            out.append(Step("relay publishes", Actor.RELAY, True, world._replace(published=world.published | bit)))

    # -- two workers: the one that runs the latest attempt, and one that is stale

    def _admit(self, world: World, out: list[Step]) -> None:
        op = world.op
        if op.state not in WAITING or op.admitted == 0:
            return
        for revision in (1, 2):
            if not world.published & (1 << revision):
                continue
            if self.deciding.may_admit(op, revision):
                request = Request(op.attempt + 1, revision, 0, False, not self.rules.in_ledger, True)
                after = world._replace(op=admitted(op), requests=(*world.requests, request), mind=self._read(world))
                out.append(Step(f"admit {request.attempt}", Actor.WORKER, True, self.nature.tidy(after)))
            elif revision == op.revision:
                decision = self.deciding.not_admissible(op, Actor.WORKER)
                self.add(out, ("not admitted", Actor.WORKER, True), world, decision)

    def _answers(self, world: World, out: list[Step]) -> None:
        for attempt in range(1, world.op.attempt):
            decision = self.deciding.stale(world.op, attempt)
            if decision.moved and decision.op is not None:
                after = self.nature.tidy(world._replace(op=decision.op))
                out.append(Step(f"{attempt} answers, stale", Actor.WORKER, False, after, attempt))
        for request in world.requests:
            if request.alive:
                for outcome in _LANDED if request.landed else _NOT_LANDED:
                    self._answer(world, request, outcome, out)
                if self.rules.in_ledger:
                    self._answer(world, request, AttemptOutcome.DONE, out)

    def _answer(self, world: World, request: Request, outcome: AttemptOutcome, out: list[Step]) -> None:
        not_sent = outcome is AttemptOutcome.NOT_SENT
        if not_sent and world.spent.not_sent >= self.configuration.not_sent:
            return
        op, decision = world.op, self.deciding.settle(world.op, request.attempt, outcome, request.revision)
        after = self.write(world, decision)
        if after is None:
            return  # evidence that changes nothing: that worker may as well still be silent
        uncertain = outcome is AttemptOutcome.UNCERTAIN
        answered = request._replace(alive=False, pending=request.pending and uncertain, age=request.age if uncertain else 0)
        requests = tuple(answered if one is request else one for one in world.requests)
        spent = world.spent._replace(not_sent=world.spent.not_sent + not_sent)
        sink = world.sink
        if self.rules.in_ledger and outcome is AttemptOutcome.DONE and decision.moved:
            sink = self.nature.applied(sink, request.revision)
        after = after._replace(requests=requests, spent=spent, sink=sink)
        system = op.state is State.RUNNING and request.attempt == op.attempt
        out.append(Step(f"{request.attempt} answers {outcome}", Actor.WORKER, system, self.nature.tidy(after), request.attempt))

    def _callbacks(self, world: World, out: list[Step]) -> None:
        """A receipt that comes in by itself, once; also while the worker still runs."""
        if not self.configuration.callback or self.rules.in_ledger:
            return
        op = world.op
        for request in world.requests:
            if not request.landed or (request.alive and (op.state is not State.RUNNING or op.receipt)):
                continue
            after = self.write(world, self.deciding.recorded(op, request.attempt))
            if after is not None:
                if not request.alive:
                    after = after._replace(requests=tuple(one for one in world.requests if one is not request))
                out.append(
                    Step(
                        f"receipt of {request.attempt} comes in", Actor.CALLBACK, False, self.nature.tidy(after), request.attempt
                    )
                )

    # -- sweepers and reconciler

    def _sweep(self, world: World, out: list[Step]) -> None:
        op, ask, sweeper = world.op, self.deciding, Actor.DUE_SWEEPER
        if op.state is State.RUNNING:
            self.add(out, ("lease over", sweeper, True), world, ask.lease_over(op))
        elif op.state in WAITING:
            self.add(out, ("its record's hold is over", sweeper, False), world, ask.set_aside(op))
        elif op.state is State.AWAITING_CONFIRMATION:
            self.add(out, ("sent again under its key", sweeper, True), world, ask.send_again(op))
            self.add(out, ("nobody can ask", Actor.RECONCILER, True), world, ask.without_probe(op))
        elif op.state is State.COMPENSATING:
            for good in (True, False):
                step = (f"the linked operation {'is done' if good else 'failed'}", Actor.RECONCILER, True)
                self.add(out, step, world, ask.linked_ended(op, good))

    def _reconcile(self, world: World, out: list[Step]) -> None:
        op, mind = world.op, world.mind
        if mind is not None and (mind.read is not None or op.state is not State.MANUAL_REVIEW):
            decision = self.deciding.remedy(op, mind)
            self.add(out, (f"verdict {mind.verdict.value}", Actor.RECONCILER, True), world, decision)
        probed = op.state is State.AWAITING_CONFIRMATION or (op.state is State.SUCCEEDED and not op.closed)
        if not probed or not self.rules.has_probe or (mind is not None and mind.read is not None):
            return
        for verdict, past in self.observed(world):
            if verdict is not Verdict.MISSING or self.deciding.is_missing(op):
                seen = world._replace(mind=Mind(verdict, past or verdict is Verdict.MISSING))
                out.append(Step(f"probe sees {verdict.value}", None, True, seen))
        if self.configuration.ambiguous and mind is None:
            out.append(Step("the deadline is over", None, False, world._replace(mind=Mind(Verdict.AMBIGUOUS, True))))

    def observed(self, world: World) -> list[tuple[Verdict, bool]]:
        """What a read of the sink may come to, and whether it is asked past the absence wait of the latest attempt."""
        op, sink = world.op, world.sink
        past = op.admitted is None or op.admitted >= self.configuration.seen_from
        out = []
        if not sink.effects or sink.hidden:
            out.append((Verdict.MISSING, past))
        if sink.effects:
            verdict = Verdict.CORRECT if sink.content == op.revision else Verdict.DIVERGENT
            several = sink.effects > 1 and not (self.rules.by_nature_unique or self.rules.version_guard)
            out.append((Verdict.AMBIGUOUS if several else verdict, past))
        return out


class _People:
    """What a person and the caller may do. A person decides on what was looked at, which may be out of date by then."""

    def __init__(self, steps: Steps) -> None:
        self.steps = steps
        self.configuration = steps.configuration
        self.deciding = steps.deciding

    def act(self, world: World, out: list[Step]) -> None:
        op = world.op
        if self.configuration.cancels and not op.closed and not op.cancel:
            self.steps.add(out, ("the caller cancels", Actor.CALLER, False), world, self.deciding.cancel(op, Actor.CALLER))
        if op.state is State.AWAITING_CONFIRMATION:
            self.steps.add(out, ("a person takes it", Actor.PERSON, False), world, self.deciding.act("take", op, None))
        elif op.state is State.MANUAL_REVIEW:
            self._review(world, out)
        elif op.state is State.QUARANTINED:
            self._quarantined(world, out)

    def _review(self, world: World, out: list[Step]) -> None:
        op, mind = world.op, world.mind
        if mind is None or mind.read is None:
            for verdict, past in self.steps.observed(world):
                seen = world._replace(mind=Mind(verdict, past))
                out.append(Step(f"a person sees {verdict.value}", None, False, seen))
        if mind is None:
            return
        if mind.read is not None:
            self._requeue(world, Mind(Verdict.AMBIGUOUS, False), out)
            return
        acts = {
            Verdict.CORRECT: ("confirm",),
            Verdict.MISSING: ("close",),
            Verdict.DIVERGENT: ("compensate",),
            Verdict.AMBIGUOUS: ("confirm", "compensate"),
        }[mind.verdict]
        for act in acts:
            self.steps.add(out, (f"a person: {act}", Actor.PERSON, False), world, self.deciding.act(act, op, mind))
        self._requeue(world, mind, out)

    def _requeue(self, world: World, mind: Mind, out: list[Step]) -> None:
        if world.spent.risks < self.configuration.risks:
            risked = world._replace(spent=world.spent._replace(risks=world.spent.risks + 1))
            decision = self.deciding.act("requeue", world.op, mind)
            self.steps.add(out, ("a person: requeue", Actor.PERSON, False), risked, decision)

    def _quarantined(self, world: World, out: list[Step]) -> None:
        op, spent, most = world.op, world.spent, self.configuration
        self.steps.add(out, ("a person discards it", Actor.PERSON, False), world, self.deciding.cancel(op, Actor.PERSON))
        if spent.looks < most.looks:
            looked = world._replace(spent=spent._replace(looks=spent.looks + 1))
            self.steps.add(out, ("a person: look first", Actor.PERSON, False), looked, self.deciding.look_first(op))
        if spent.replays < most.replays:
            granted = world._replace(spent=spent._replace(replays=spent.replays + 1))
            for edit in (False, True) if most.edits else (False,):
                name = "a person replays it, edited" if edit else "a person replays it"
                self.steps.add(out, (name, Actor.PERSON, False), granted, self.deciding.replay(op, edit))
