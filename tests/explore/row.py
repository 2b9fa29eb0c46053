"""The simulator's one row: its virtual clock, what the ledger's statements make of it, and the invariants after every event."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from heapq import heappush
from random import Random
from typing import Final

from counterfoil.core.decisions import Ask, Kept, Move
from counterfoil.core.outcomes import AttemptOutcome
from counterfoil.core.reasons import Reason
from counterfoil.core.standing import Standing
from counterfoil.core.states import EXCEPTIONS, FINAL, State
from counterfoil.core.transitions import Actor, is_edge
from counterfoil.core.verdicts import Mandate
from tests.explore.configuration import ENFORCED
from tests.explore.deciding import Core
from tests.explore.journal import START, Request, Sink
from tests.support.standings import KINDS as REAL_KINDS
from tests.support.standings import RUNNING, after

SECOND: Final = timedelta(seconds=1)
HOUR: Final = timedelta(hours=1)
KINDS: Final = {name: rules for name, rules in REAL_KINDS.items() if not rules.done_elsewhere}
FAULTS_END: Final = 8 * HOUR  #: from here on everything works; what is left must come to rest
DENYING: Final = frozenset({Reason.CANCELLED.value, Reason.SUPERSEDED.value})
CERTAIN: Final = frozenset({AttemptOutcome.NOT_SENT, AttemptOutcome.TEMPORARY, AttemptOutcome.PERMANENT})


class Broken(Exception):
    """An invariant fell: its name, what is wrong, and what happened until then."""

    def __init__(self, invariant: str, words: str, log: list[str]) -> None:
        super().__init__(invariant, words)
        self.invariant, self.words, self.log = invariant, words, log


class Row:
    """The row, its clock, and what must hold of both. `due` is what whoever plays does when its due time has come."""

    def __init__(self, seed: int, core: Core, kind: str | None = None) -> None:
        self.random = Random(seed)
        self.core = core
        self.kind = kind or self.random.choice(sorted(KINDS))
        self.rules = replace(KINDS[self.kind], max_tries=self.random.randint(1, 4))
        self.mandate: Mandate = ENFORCED if self.random.random() < 0.7 else Mandate()
        self.now = START
        self.log: list[str] = []
        self.sink = Sink(self.rules)
        self.requests: list[Request] = []
        self.standing = replace(
            RUNNING,
            state=State.QUEUED,
            attempt=0,
            tries_left=self.rules.max_tries,
            outcome=None,
            admitted_at=None,
            attempt_until=None,
            session=None,
        )
        self.not_before: datetime | None = None
        self.closed = self.denied = self.receipt = False
        self.risks = self.replays = self.given_back = self.grants = 0
        self.absences: list[datetime] = []
        self.awaiting_since = START
        self._events: list[tuple[datetime, int, Callable[[], None]]] = []
        self._count = 0
        self._busy = False
        self._done = 0

    # -- the clock

    def later(self, wait: timedelta, act: Callable[[], None]) -> None:
        """Something happens after a while."""
        self._count += 1
        heappush(self._events, (self.now + max(wait, timedelta(0)), self._count, act))

    def some(self, longest: timedelta) -> timedelta:
        """A while, most often a short one."""
        return longest * (self.random.random() ** 3)

    @property
    def faulty(self) -> bool:
        """Whether things still go wrong."""
        return self.now - START < FAULTS_END

    def chance(self, share: float) -> bool:
        """A misfortune, while there are any."""
        return self.faulty and self.random.random() < share

    def rests(self) -> bool:
        """Whether nobody but a person is needed any more."""
        return self.closed or self.standing.state in FINAL or self.standing.state in EXCEPTIONS

    # -- the ledger

    def write(self, decision: object, who: Actor, name: str, attempt: int = 0) -> bool:
        """What the statements make of the row; whether it moved."""
        before = self.standing
        if isinstance(decision, Ask):
            self.standing = replace(before, cancel_asked=True)
            self.not_before = None
            self.later(self.some(5 * SECOND), self.deliver)
        elif isinstance(decision, Kept):
            self._evidence(decision, attempt)
        if not isinstance(decision, Move):
            return False
        self.log.append(f"{self.now - START} {name}: {before.state} to {decision.to} ({decision.reason})")
        self._legal(before, decision, who, attempt)
        self.standing = replace(after(before, decision), session=None)
        self.not_before = self.now + decision.wait if decision.not_before_wait and decision.wait is not None else None
        self.closed = decision.wait is None
        absent = decision.reason in DENYING or (decision.reason == Reason.DECIDED.value and decision.doubt_over)
        self.denied = decision.to is State.NOT_APPLICABLE and absent
        self.receipt |= decision.outcome is AttemptOutcome.DONE
        self.given_back += decision.try_back
        self.grants += decision.granted
        self.absences.clear()
        self.awaiting_since = self.now
        self._ended(decision)
        if decision.wait is not None:
            self.later(decision.wait + self.some(2 * SECOND), self.due)
        if decision.to in EXCEPTIONS and self.faulty:
            self.later(self.some(HOUR), self.person)
        return True

    def _evidence(self, kept: Kept, attempt: int) -> None:
        if not kept.applied:
            return
        self.receipt = True
        standing = self.standing
        if standing.doubtful_since is None and standing.state not in FINAL:
            older = attempt < standing.attempt
            since = (standing.admitted_at or self.now) - (timedelta(microseconds=1) if older else timedelta(0))
            key = 0 if older or kept.reason == Reason.OLD_REVISION.value else standing.revision
            self.standing = replace(standing, doubtful_since=since, doubtful_key=(key, standing.generation))

    def due(self) -> None:
        """Its due time has come."""
        raise NotImplementedError

    def deliver(self) -> None:
        """A record of it comes to a worker."""
        raise NotImplementedError

    def person(self) -> None:
        """A person looks at it."""
        raise NotImplementedError

    # -- what must hold

    def broken(self, invariant: str, words: str) -> None:
        """It does not."""
        raise Broken(invariant, words, [f"{self.kind}, {self.rules.max_tries} tries", *self.log])

    def check(self) -> None:
        """What must hold after every event."""
        standing, effects = self.standing, self.sink.effects
        if effects > 1 + self.risks:
            self.broken("S1", f"{effects} effects")
        if standing.state in (State.SUCCEEDED, State.CONFIRMED) and not effects:
            self.broken("S1", f"{standing.state} without an effect")
        if (standing.state is State.QUARANTINED or self.denied) and effects:
            self.broken("S1", f"{standing.state}, and there is an effect")
        most = self.rules.max_tries + self.grants + self.given_back
        if standing.tries_left < 0 or standing.attempt > most:
            self.broken("S22", "more attempts than tries")

    def _legal(self, before: Standing, move: Move, who: Actor, attempt: int) -> None:
        if not is_edge(before.state, move.to, who) or self.closed:
            self.broken("S3", f"{who} moved {before.state} to {move.to}")
        if before.state is State.QUARANTINED and who is not Actor.PERSON:
            self.broken("S13", f"{who} took it out of quarantine")
        if attempt and attempt != before.attempt:
            self.broken("S9", f"a stale answer moved {before.state}")

    def _ended(self, move: Move) -> None:
        sink = self.sink
        lands = any(one.pending(self.now) for one in self.requests)
        if (move.to is State.QUARANTINED or self.denied) and (lands or sink.effects):
            self.broken("S11", f"{move.to} while a request is there or may land")
        if move.to is State.COMPENSATING and (lands or not sink.effects):
            self.broken("S11", "compensating while a request may land, or nothing is there")
        if move.to is State.CONFIRMED and sink.content != self.standing.revision:
            self.broken("S2", "confirmed with another content")

    def _admissible(self, revision: int) -> None:
        standing, rules = self.standing, self.rules
        if revision != standing.revision:
            self.broken("S8", "an old revision runs")
        if standing.cancel_asked or standing.tries_left <= 0:
            self.broken("S22", "it was cancelled or had no try left")
        if self.not_before is not None and self.not_before > self.now:
            self.broken("L4", "it runs before its time")
        there = [one for one in self.requests if one.landed or one.pending(self.now)]
        if not there or standing.accepted_risk or rules.version_guard or rules.in_ledger:
            return
        same = rules.keyed and all((one.revision, one.generation) == (revision, standing.generation) for one in there)
        first = min(self.sink.keys.values(), default=self.now)
        if not same or (rules.horizon is not None and self.now + rules.landing - first >= rules.horizon):
            self.broken("S10", "a repeat that may double the effect")
