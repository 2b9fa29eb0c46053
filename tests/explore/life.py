"""One life under a seed: one entity's operation, two workers, a sink, a reconciler and a person, on a virtual clock.

Unlike the search it has the real durations and due times, and one order of events, drawn at random. Every decision is core's.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from heapq import heappop
from typing import Final

from counterfoil.core.decisions import Answered, Move
from counterfoil.core.outcomes import AttemptOutcome
from counterfoil.core.reasons import Reason
from counterfoil.core.states import EXCEPTIONS, WAITING, State
from counterfoil.core.transitions import Actor
from counterfoil.core.verdicts import Seen, Verdict
from tests.explore.journal import START, Request
from tests.explore.row import CERTAIN, HOUR, SECOND, Row
from tests.support.standings import admitted

LEASE: Final = 30 * SECOND
RESEND: Final = 30 * SECOND  #: how often a waiting operation's record is sent again
LOOK: Final = 60 * SECOND  #: how often the reconciler looks again at what is due and not decided
END: Final = timedelta(days=40)
MOST_EVENTS: Final = 3_000  #: a life with more turns in circles: looks at a sink until its deadline are some 1,500


class Life(Row):
    """Plays one seed to its end. Raises Broken."""

    def run(self) -> State:
        """To the end: everything rests, or the invariants say that something is wrong."""
        self.later(self.some(5 * SECOND), self.deliver)
        if self.random.random() < 0.25:
            self.later(self.some(2 * HOUR), self.cancel)
        while self._events:
            self.now, _, act = heappop(self._events)
            if self.now - START > END or self._done > MOST_EVENTS:
                break
            self._done += 1
            act()
            self.check()
        if not self.rests():
            self.broken("L1", f"it still is {self.standing.state}")
        return self.standing.state

    def due(self) -> None:
        """The due time of a row: what that means in its state."""
        state = self.standing.state
        if state in WAITING:
            self.deliver()
        elif state is State.RUNNING:
            self.end_lease()
        elif state is State.AWAITING_CONFIRMATION or (state is State.SUCCEEDED and not self.closed):
            self.reconcile()
        elif state is State.COMPENSATING:
            good = self.random.random() < 0.7
            self.write(self.core.linked_ended(self.rules, self.standing, with_effect=good), Actor.RECONCILER, "linked")

    # -- relay and workers

    def deliver(self) -> None:
        """A record comes to one of the workers: the current revision's, or an old copy."""
        if self.standing.state not in WAITING:
            return
        if self.chance(0.05):
            self.later(self.some(600 * SECOND), self.deliver)  # the relay, the broker or the group was away
            return
        revision = self.standing.revision if self.random.random() < 0.9 else 1
        may = self.core.may_admit(self.rules, self.standing, self.now, revision=revision, not_before=self.not_before)
        if may:
            self.admit(revision)
            return
        move = self.core.not_admissible(self.rules, self.standing, self.now)
        due = self.not_before is None or self.not_before <= self.now
        if due and revision == self.standing.revision and self.write(move, Actor.WORKER, "not admitted"):
            return
        if self.chance(0.01):
            self.write(self.core.set_aside(self.rules, self.standing, Reason.HOLD_OVER.value), Actor.DUE_SWEEPER, "hold over")
        if self.standing.state in WAITING:
            self.later(max(RESEND, (self.not_before or self.now) - self.now), self.deliver)

    def admit(self, revision: int) -> None:
        """The attempt is counted, and its request goes on its way."""
        self._admissible(revision)
        risk, rules = self.standing.accepted_risk, self.rules
        until = self.now + rules.timeout
        self.standing = replace(admitted(self.standing, self.now), attempt_until=until, session=1)
        self.not_before = None
        self.log.append(f"{self.now - START} admitted {self.standing.attempt}{' at a risk' if risk else ''}")
        request = Request(self.standing.attempt, revision, self.standing.generation, None, self.now + rules.landing)
        self.requests.append(request)
        self._answer(request, self._fate())
        self.later(rules.timeout + self.some(5 * SECOND), self.due)

    def _fate(self) -> AttemptOutcome | None:
        """What the attempt comes to; None: its worker never says."""
        if not self.faulty:
            return AttemptOutcome.DONE
        return self.random.choices(
            (AttemptOutcome.DONE, AttemptOutcome.TEMPORARY, AttemptOutcome.PERMANENT, AttemptOutcome.NOT_SENT,
             AttemptOutcome.UNCERTAIN, None), (30, 18, 6, 6, 22, 18))[0]  # fmt: skip

    def _answer(self, request: Request, outcome: AttemptOutcome | None) -> None:
        rules, random = self.rules, self.random
        if not rules.in_ledger and outcome in (AttemptOutcome.DONE, AttemptOutcome.UNCERTAIN, None):
            applied = outcome is AttemptOutcome.DONE or random.random() < 0.6
            latest = rules.timeout if outcome is AttemptOutcome.DONE else rules.landing
            if applied:
                lands = latest if random.random() < 0.2 else self.some(latest)
                request.lands_at = self.now + lands
                self.later(lands, lambda: self._land(request))
        request.refused = outcome in CERTAIN
        if outcome is AttemptOutcome.DONE and request.lands_at is not None:
            after_landing = request.lands_at - self.now + self.some(SECOND)
            self.later(after_landing + self._stalled(), lambda: self._settle(request, outcome))
        elif outcome is not None:
            self.later(self.some(rules.timeout) + self._stalled(), lambda: self._settle(request, outcome))
        else:
            self.later(self.some(rules.timeout) + LEASE, self.end_lease)
            if request.lands_at is not None and random.random() < 0.3:
                self.later(self.some(2 * HOUR), lambda: self._call_back(request))

    def _stalled(self) -> timedelta:
        """How long a worker sleeps before it saves its answer."""
        return self.some(HOUR) if self.chance(0.15) else timedelta(0)

    def _land(self, request: Request) -> None:
        request.landed = True
        self.sink.apply(request.revision, request.generation, self.now)

    def _settle(self, request: Request, outcome: AttemptOutcome) -> None:
        answered = Answered(request.attempt, outcome, str(Reason.TIMEOUT), revision=request.revision)
        decision = self.core.settle(
            self.rules, self.standing, answered, now=self.now, jitter=self.random.random(), sampled=self.random.random() < 0.8
        )
        if self.rules.in_ledger and outcome is AttemptOutcome.DONE and isinstance(decision, Move):
            self.sink.apply(request.revision, request.generation, self.now)
        self.write(decision, Actor.WORKER, f"{request.attempt} answers {outcome}", request.attempt)

    def _call_back(self, request: Request) -> None:
        if request.landed:
            answered = Answered(request.attempt, AttemptOutcome.DONE, str(Reason.RECEIPT))
            decision = self.core.record_outcome(self.rules, self.standing, answered, sampled=True)
            self.write(decision, Actor.CALLBACK, f"receipt of {request.attempt}", request.attempt)

    def end_lease(self) -> None:
        """The due sweeper finds the worker gone, or the run time over."""
        standing = self.standing
        if standing.state is not State.RUNNING:
            return
        over = self.now >= (standing.admitted_at or self.now) + LEASE
        move = self.core.lease_over(self.rules, standing, lease_over=over, now=self.now, jitter=self.random.random())
        self.write(move, Actor.DUE_SWEEPER, "lease over")

    # -- reconciler and people

    def reconcile(self) -> None:
        """A probe, and what follows from it some time later; or what follows where nobody can ask."""
        standing = self.standing
        if standing.state not in (State.AWAITING_CONFIRMATION, State.SUCCEEDED) or self.closed:
            return
        if not self.rules.has_probe:
            if not self.write(self.core.send_again(self.rules, standing, now=self.now), Actor.DUE_SWEEPER, "sent again"):
                move = self.core.without_probe(self.rules, standing, now=self.now)
                self.write(move, Actor.RECONCILER, "nobody can ask")
            return
        seen = self.probe()
        if seen is not None:
            self.later(self.some(30 * SECOND), lambda: self._decide(seen))
        self.later(LOOK + self.some(LOOK), self.reconcile)

    def probe(self) -> Seen | None:
        """What the sink shows now, as a verdict; None: nothing yet."""
        standing, asked = self.standing, self.now
        if self.chance(0.1):
            return None
        if self.now - self.awaiting_since > self.rules.deadline:
            return Seen(Verdict.AMBIGUOUS, standing.sequence, asked, self.receipt)
        verdict = self.observed()
        if verdict is Verdict.MISSING:
            self.absences.append(asked)
            ended = standing.attempt_until if standing.attempt else None
            if not self.core.is_missing(self.rules, self.absences, ended=ended, probes=2):
                return None
        return Seen(verdict, standing.sequence, asked, self.receipt)

    def observed(self) -> Verdict:
        """One read of the sink."""
        sink = self.sink
        if not sink.effects or (self.now < sink.visible_at and self.random.random() < 0.5):
            return Verdict.MISSING
        if sink.effects > 1 and not (self.rules.by_nature_unique or self.rules.version_guard):
            return Verdict.AMBIGUOUS
        return Verdict.CORRECT if sink.content == self.standing.revision else Verdict.DIVERGENT

    def _decide(self, seen: Seen) -> None:
        seen = replace(seen, receipt=self.receipt)
        move = self.core.remedy(self.rules, self.mandate, self.standing, seen, now=self.now)
        self.write(move, Actor.RECONCILER, f"verdict {seen.verdict.value}")

    def cancel(self) -> None:
        """The caller."""
        self.write(self.core.cancel(self.standing, by=Actor.CALLER), Actor.CALLER, "cancel")

    def person(self) -> None:
        """Looks at what waits for a person, and acts a while later on what was seen."""
        if self._busy or self.standing.state not in EXCEPTIONS:
            return
        self._busy = True
        standing = self.standing
        if standing.state is State.MANUAL_REVIEW:
            seen = Seen(self.observed(), standing.sequence, self.now, self.receipt)
            self.later(self.some(HOUR), lambda: self._review(seen))
        else:
            self.later(self.some(HOUR), self._quarantined)

    def _review(self, seen: Seen) -> None:
        self._busy = False
        standing = self.standing
        if standing.state is not State.MANUAL_REVIEW:
            return
        act = self.random.choice(("evidence", "evidence", "requeue"))
        if act == "requeue" and self.risks < 2:
            if self.write(self.core.requeue(standing, seen), Actor.PERSON, "a person: requeue"):
                self.risks += 1
        elif seen.verdict is Verdict.CORRECT:
            self.write(self.core.confirm(standing, seen), Actor.PERSON, "a person: confirm")
        elif seen.verdict is Verdict.MISSING:
            self.write(self.core.close(self.rules, standing, seen), Actor.PERSON, "a person: close")
        else:
            self.write(self.core.compensate(self.rules, standing, seen), Actor.PERSON, "a person: compensate")
        if self.standing.state is State.MANUAL_REVIEW and self.faulty:
            self.later(self.some(HOUR), self.person)

    def _quarantined(self) -> None:
        self._busy = False
        standing = self.standing
        if standing.state is not State.QUARANTINED:
            return
        act = self.random.choice(("replay", "edit", "look first", "discard", "nothing"))
        if act in ("replay", "edit") and self.replays < 3:
            move = self.core.replay(self.rules, standing)
            if self.write(move, Actor.PERSON, f"a person: {act}"):
                self.replays += 1
                self.standing = replace(self.standing, revision=standing.revision + (act == "edit"))
        elif act == "look first":
            self.write(self.core.look_first(self.rules, standing), Actor.PERSON, "a person: look first")
        elif act == "discard":
            self.write(self.core.cancel(standing, by=Actor.PERSON), Actor.PERSON, "a person: discard")
