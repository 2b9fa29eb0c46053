"""Whole lives of one operation against a sink that loses answers, lands requests late and forgets keys. By property.

The ledger, the worker, the sweeper and a probe are played with the real decisions; the sink keeps a journal. Asserted on that
journal: at most one effect, one where it is claimed, none where it is denied.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from datetime import timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from counterfoil.core.decisions import Answered, Kept, Move, cancel, lease_over, not_admissible, send_again, settle
from counterfoil.core.outcomes import AttemptOutcome
from counterfoil.core.reasons import Reason
from counterfoil.core.standing import Rules, Standing
from counterfoil.core.states import State
from counterfoil.core.transitions import Actor, is_edge
from tests.support.standings import KINDS, NOW, RUNNING, SECOND, admitted, after

WAITING = {State.QUEUED, State.RETRY_WAIT}
#: What becomes of an attempt: what the sink does with it, and what the worker will say if it lives to.
FATES = {
    "done": AttemptOutcome.DONE,
    "temporary": AttemptOutcome.TEMPORARY,
    "permanent": AttemptOutcome.PERMANENT,
    "not_sent": AttemptOutcome.NOT_SENT,
    "answer lost, applied": AttemptOutcome.UNCERTAIN,
    "answer lost, applied late": AttemptOutcome.UNCERTAIN,
    "answer lost, applied far too late": AttemptOutcome.UNCERTAIN,
    "answer lost, never applied": AttemptOutcome.UNCERTAIN,
}
STEPS = (
    "admit",
    "answer",
    "answer",
    "lease over",
    "send again",
    "probe",
    "cancel",
    "later",
    "much later",
    "almost a horizon later",
)


@dataclass
class Life:
    """One operation, its ledger row, its attempts and the sink's journal."""

    rules: Rules
    standing: Standing
    now: timedelta = timedelta(0)  #: since NOW
    fates: dict[int, str] = field(default_factory=dict)  #: of attempts that have not answered
    landing: list[tuple[timedelta, int]] = field(default_factory=list)
    first_admission: timedelta | None = None
    effects: int = 0
    calls: int = 0
    not_sent: int = 0
    sink_broke_its_word: bool = False

    @property
    def longest(self) -> timedelta:
        """How long a request may still be applied after its admission, if the sink keeps its word and the worker its grace."""
        return self.rules.timeout + self.rules.send_grace + self.rules.request_life

    def apply(self, at: timedelta) -> None:
        """A request reaches the sink; every attempt bears the same key and version here."""
        assert self.first_admission is not None
        kept = self.rules.keyed and (self.rules.horizon is None or at - self.first_admission < self.rules.horizon)
        if not self.effects or not (kept or self.rules.version_guard):
            self.effects += 1

    def pass_time(self, wait: timedelta) -> None:
        self.now += wait
        for at, attempt in sorted(self.landing):
            if at <= self.now:
                self.landing.remove((at, attempt))
                self.apply(at)

    def write(self, decision: Move | Kept | None, who: Actor) -> None:
        """The statement that saves a decision, and the table's word on it."""
        if isinstance(decision, Move):
            assert is_edge(self.standing.state, decision.to, who), (self.standing, decision)
        self.standing = after(self.standing, decision)

    def admit(self, fate: str) -> None:
        if self.standing.state not in WAITING:
            return
        move = not_admissible(self.rules, self.standing, NOW + self.now)
        if move is not None:
            self.write(move, Actor.WORKER)
            return
        self.standing = replace(admitted(self.standing, NOW + self.now), attempt_until=NOW + self.now + self.rules.timeout)
        if self.first_admission is None:
            self.first_admission = self.now
        self.fates[self.standing.attempt] = fate
        self.calls += 1
        if self.rules.in_ledger:
            return
        if fate in {"done", "answer lost, applied"}:
            self.apply(self.now)
        if fate == "answer lost, applied late":
            self.landing.append((self.now + self.longest - SECOND, self.standing.attempt))
        if fate == "answer lost, applied far too late" and self.calls == 1:
            self.sink_broke_its_word = True
            self.landing.append((self.now + timedelta(minutes=30), self.standing.attempt))

    def answer(self) -> None:
        """The oldest attempt that has not answered says what it has to say, however late."""
        if not self.fates:
            return
        attempt = min(self.fates)
        outcome = FATES[self.fates.pop(attempt)]
        answered = Answered(attempt, outcome, str(Reason.TIMEOUT))
        decision = settle(self.rules, self.standing, answered, now=NOW + self.now, jitter=0.5, sampled=True)
        if isinstance(decision, Move):
            self.not_sent += decision.try_back
            self.effects += self.rules.in_ledger and outcome is AttemptOutcome.DONE
        else:
            assert attempt != self.standing.attempt or self.standing.state is not State.RUNNING
        self.write(decision, Actor.WORKER)

    def probe(self) -> None:
        """A verdict "missing", past the absence wait of the latest attempt: what the reconciler may do about it."""
        standing = self.standing
        ended = standing.attempt_until
        if standing.state is not State.AWAITING_CONFIRMATION or not self.rules.has_probe or self.effects or ended is None:
            return
        if NOW + self.now < ended + self.rules.absence_wait:
            return
        last = standing.outcome is AttemptOutcome.PERMANENT or standing.tries_left <= 0
        if last:
            self.standing = replace(standing, state=State.QUARANTINED, outcome=AttemptOutcome.CLOSED, doubtful_since=None)
        elif standing.cancel_asked:
            self.standing = replace(standing, state=State.NOT_APPLICABLE)
        elif self.rules.harmless(standing, NOW + self.now):
            self.standing = replace(standing, state=State.RETRY_WAIT, outcome=AttemptOutcome.PRESUMED_ABSENT, unresolved=False)

    def ask_cancel(self) -> None:
        decision = cancel(self.standing)
        if isinstance(decision, Move):
            self.write(decision, Actor.CALLER)
        elif self.standing.state not in {State.QUARANTINED, State.SUCCEEDED, State.CONFIRMED, State.NOT_APPLICABLE}:
            self.standing = replace(self.standing, cancel_asked=True)

    def step(self, name: str, fate: str) -> None:
        before = self.standing
        if name == "admit":
            self.admit(fate)
        elif name == "answer":
            self.answer()
        elif name == "lease over":
            self.write(lease_over(self.rules, self.standing, lease_over=True, now=NOW + self.now), Actor.DUE_SWEEPER)
        elif name == "send again":
            self.write(send_again(self.rules, self.standing, now=NOW + self.now), Actor.DUE_SWEEPER)
        elif name == "probe":
            self.probe()
        elif name == "cancel":
            self.ask_cancel()
        else:
            self.pass_time({"later": 20 * SECOND, "much later": timedelta(minutes=10)}.get(name, timedelta(minutes=59)))
        final = {State.SUCCEEDED, State.CONFIRMED, State.NOT_APPLICABLE, State.QUARANTINED}
        assert before.state not in final or self.standing.state is before.state

    def end(self) -> None:
        """Every request that can still land has landed: hold the journal against the ledger."""
        self.pass_time(timedelta(days=2))
        told = self.standing
        assert self.effects <= 1, told
        if told.state in {State.SUCCEEDED, State.CONFIRMED}:
            assert self.effects == 1, told
        if told.state in {State.QUARANTINED, State.NOT_APPLICABLE} and not self.sink_broke_its_word:
            assert self.effects == 0, told
        assert self.calls - self.not_sent <= self.rules.max_tries, told
        assert told.tries_left == self.rules.max_tries - self.calls + self.not_sent


def lived(kind: str, steps: list[tuple[str, str]], tries: int) -> Life:
    rules = replace(KINDS[kind], max_tries=tries)
    queued = replace(RUNNING, state=State.QUEUED, attempt=0, tries_left=tries, outcome=None, admitted_at=None, attempt_until=None)
    life = Life(rules, queued)
    for name, fate in steps:
        life.step(name, fate)
    life.end()
    return life


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "done elsewhere"])
def test_whatever_is_lost_or_late_no_effect_is_doubled_or_denied(kind: str) -> None:
    """S1, S3, S9, S10, S11, S22: over random lives; the counts show that none of them is vacuous."""
    ends: Counter[State] = Counter()

    @settings(max_examples=400, deadline=None, database=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(
        steps=st.lists(st.tuples(st.sampled_from(STEPS), st.sampled_from(sorted(FATES))), min_size=6, max_size=30),
        first=st.sampled_from(sorted(FATES)),
        tries=st.integers(min_value=1, max_value=4),
    )
    def live(steps: list[tuple[str, str]], first: str, tries: int) -> None:
        ends[lived(kind, [("admit", first), *steps], tries).standing.state] += 1

    live()
    assert ends[State.CONFIRMED if KINDS[kind].receipt_confirms else State.SUCCEEDED], ends
    assert ends[State.QUARANTINED], ends
    assert ends[State.NOT_APPLICABLE], ends


@pytest.mark.parametrize(("before_the_end", "calls"), [(60, 2), (56, 2), (55, 1), (30, 1), (1, 1)])
def test_a_repeat_is_sent_only_while_the_key_outlasts_its_latest_landing(before_the_end: int, calls: int) -> None:
    """S1, T7: 20 s of run time, 5 s of grace and 30 s of request life; it lands as late as it can, and is one effect."""
    rules = KINDS["not probed, keyed"]
    assert rules.horizon is not None
    life = Life(rules, replace(RUNNING, state=State.QUEUED, attempt=0, tries_left=8, outcome=None, admitted_at=None))
    life.admit("answer lost, applied")
    life.answer()
    life.pass_time(rules.horizon - before_the_end * SECOND)
    life.step("send again", "")
    life.admit("answer lost, applied late")
    assert life.calls == calls
    life.end()


def test_a_late_landing_beside_a_failed_repeat_is_looked_up() -> None:
    """S11, T1, H5: attempt 1 may land after attempt 2 answered permanent, so that is not the end."""
    life = lived(
        "not probed, keyed",
        [
            ("admit", "answer lost, applied late"),
            ("answer", ""),
            ("send again", ""),
            ("admit", "permanent"),
            ("answer", ""),
        ],
        tries=4,
    )
    assert (life.standing.state, life.effects) == (State.AWAITING_CONFIRMATION, 1)


@pytest.mark.parametrize(("kind", "calls"), [("probed, promises nothing", 1), ("probed, keyed", 2), ("probed, version guard", 2)])
def test_a_request_that_lands_after_every_wait_doubles_nothing(kind: str, calls: int) -> None:
    """S10: found missing, it is sent again only where the sink itself makes the repeat harmless."""
    steps = ["answer", "much later", "probe", "admit", "answer", "much later", "much later"]
    life = lived(kind, [("admit", "answer lost, applied far too late"), *((step, "done") for step in steps)], tries=4)
    assert (life.calls, life.effects) == (calls, 1)
