"""The real core, asked once for each distinct question: rows in ticks go in, rows after the decision come out.

`Core` names every decision that the search rests on; a case replaces one of them to see whether the search notices.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from counterfoil.core import decisions
from counterfoil.core.decisions import Answered, Ask, Kept, Move, TooLate, admission, reviews, verdicts
from counterfoil.core.decisions.moves import Refused
from counterfoil.core.events import EventKind
from counterfoil.core.outcomes import AttemptOutcome
from counterfoil.core.reasons import Reason
from counterfoil.core.standing import Rules, Standing
from counterfoil.core.states import State
from counterfoil.core.transitions import Actor
from counterfoil.core.verdicts import Seen
from tests.explore.configuration import TICK, ZERO, Configuration
from tests.explore.world import Mind, Op
from tests.explore.writing import NOTHING, Decision, written

NOW: Final = datetime(2026, 1, 1, tzinfo=UTC)
_SEQUENCE: Final = 7  #: every row has it: what was read before a transition is dropped instead
_AGES: Final = [NOW - n * TICK for n in range(64)]
_MOMENT: Final = timedelta(microseconds=1)


def _look_first(rules: Rules, standing: Standing) -> Move | Refused:
    if standing.state is not State.QUARANTINED:
        return Refused(Reason.WRONG_STATE)
    kind = EventKind.AWAITING_CONFIRMATION
    return Move(State.AWAITING_CONFIRMATION, kind, Reason.LOOK_FIRST.value, standing.outcome, rules.window)


def _replay(rules: Rules, standing: Standing) -> Move | Refused:
    if standing.state is not State.QUARANTINED or standing.doubtful:
        return Refused(Reason.WRONG_STATE)
    granted = rules.max_tries - standing.tries_left
    return Move(State.QUEUED, EventKind.REPLAYED, Reason.REPLAYED.value, standing.outcome, ZERO, granted=granted)


@dataclass(frozen=True)
class Core:
    """The decisions, and the rules of the shell around them that a case can remove."""

    may_admit: Callable[..., bool] = admission.may_admit
    not_admissible: Callable[..., Move | None] = decisions.not_admissible
    set_aside: Callable[..., Move | None] = decisions.set_aside
    settle: Callable[..., Move | Kept] = decisions.settle
    record_outcome: Callable[..., Move | Kept] = decisions.record_outcome
    lease_over: Callable[..., Move | None] = decisions.lease_over
    send_again: Callable[..., Move | None] = decisions.send_again
    cancel: Callable[..., Move | Ask | TooLate] = decisions.cancel
    is_missing: Callable[..., bool] = verdicts.is_missing
    remedy: Callable[..., Move | None] = verdicts.remedy
    without_probe: Callable[..., Move | None] = verdicts.without_probe
    linked_ended: Callable[..., Move | None] = verdicts.linked_ended
    take: Callable[..., Move | Refused] = reviews.take
    confirm: Callable[..., Move | Refused] = reviews.confirm
    requeue: Callable[..., Move | Refused] = reviews.requeue
    compensate: Callable[..., Move | Refused] = reviews.compensate
    close: Callable[..., Move | Refused] = reviews.close
    look_first: Callable[..., Move | Refused] = _look_first
    replay: Callable[..., Move | Refused] = _replay
    sequence_checked: bool = True  #: a decision on an older sequence is void: the condition of every statement


class Deciding:
    """Core's answers for one configuration, each asked once."""

    def __init__(self, configuration: Configuration, core: Core) -> None:
        self.configuration = configuration
        self.rules = configuration.rules
        self.core = core
        self.asked = 0
        self._answers: dict[Any, Any] = {}
        self._standings: dict[Op, Standing] = {}

    def standing(self, op: Op) -> Standing:
        """The row as core reads it."""
        found = self._standings.get(op)
        if found is None:
            found = self._standings[op] = self._made(op)
        return found

    def _made(self, op: Op) -> Standing:
        admitted = None if op.admitted is None else _AGES[op.admitted]
        since = None if op.since is None else _AGES[op.since]
        running = op.state is State.RUNNING
        return Standing(
            number=1,
            state=op.state,
            sequence=_SEQUENCE,
            attempt=op.attempt,
            tries_left=op.tries,
            revision=op.revision,
            generation=0,
            outcome=op.outcome,
            doubtful_since=since,
            doubtful_key=op.key,
            unresolved=op.unresolved,
            admitted_at=admitted,
            attempt_until=None if admitted is None else admitted + self.rules.timeout,
            session=1 if running else None,
            cancel_asked=op.cancel,
            accepted_risk=op.risk,
        )

    # -- the worker

    def may_admit(self, op: Op, revision: int) -> bool:
        key = ("may admit", op, revision)
        found = self._answers.get(key)
        if found is None:
            found = self._answers[key] = self.core.may_admit(self.rules, self.standing(op), NOW, revision=revision)
        return bool(found)

    def not_admissible(self, op: Op, by: Actor) -> Decision:
        return self._ask(("not admissible", op, by), lambda s: self.core.not_admissible(self.rules, s, NOW, by=by))

    def set_aside(self, op: Op) -> Decision:
        return self._ask(("set aside", op), lambda s: self.core.set_aside(self.rules, s, Reason.HOLD_OVER.value))

    def settle(self, op: Op, attempt: int, outcome: AttemptOutcome, revision: int) -> Decision:
        answered = Answered(attempt, outcome, str(Reason.TIMEOUT), revision=revision)
        sampled = self.configuration.sampled
        return self._ask(
            ("settle", op, attempt, outcome, revision),
            lambda s: self.core.settle(self.rules, s, answered, now=NOW, jitter=0.0, sampled=sampled),
            attempt,
        )

    def stale(self, op: Op, attempt: int) -> Decision:
        """The first answer of an attempt that is not the latest which moves the row; there must be none (S9)."""
        key = ("stale", op, attempt)
        found: Decision | None = self._answers.get(key)
        if found is None:
            answers = (self.settle(op, attempt, outcome, op.revision) for outcome in AttemptOutcome)
            found = self._answers[key] = next((one for one in answers if one.moved), NOTHING)
        return found

    def recorded(self, op: Op, attempt: int) -> Decision:
        """A sink's callback: it says whose receipt it is, and not of which revision."""
        answered = Answered(attempt, AttemptOutcome.DONE, str(Reason.RECEIPT))
        sampled = self.configuration.sampled
        return self._ask(
            ("recorded", op, attempt),
            lambda s: self.core.record_outcome(self.rules, s, answered, sampled=sampled),
            attempt,
        )

    # -- the sweepers and the reconciler

    def lease_over(self, op: Op) -> Decision:
        return self._ask(("lease over", op), lambda s: self.core.lease_over(self.rules, s, lease_over=True, now=NOW))

    def send_again(self, op: Op) -> Decision:
        return self._ask(("send again", op), lambda s: self.core.send_again(self.rules, s, now=NOW))

    def without_probe(self, op: Op) -> Decision:
        return self._ask(("without probe", op), lambda s: self.core.without_probe(self.rules, s, now=NOW))

    def linked_ended(self, op: Op, with_effect: bool) -> Decision:
        return self._ask(("linked", op, with_effect), lambda s: self.core.linked_ended(self.rules, s, with_effect=with_effect))

    def is_missing(self, op: Op) -> bool:
        """Whether one absent answer, asked now, is a proof."""
        key = ("missing", op)
        found = self._answers.get(key)
        if found is None:
            ended = self.standing(op).attempt_until
            found = self._answers[key] = self.core.is_missing(self.rules, [NOW], ended=ended, probes=1)
        return bool(found)

    def remedy(self, op: Op, mind: Mind) -> Decision:
        """On the row that was read; where that is an older one, its decision is written over the newer row all the same."""
        mandate = self.configuration.mandate

        def ask(standing: Standing) -> Move | None:
            read = standing if mind.read is None else self.standing(mind.read)
            return self.core.remedy(self.rules, mandate, read, self.seen(read, mind, op.receipt), now=NOW)

        return self._ask(("remedy", op, mind), ask)

    def seen(self, standing: Standing, mind: Mind, receipt: bool) -> Seen:
        """What a mind read, as of the row it was read from; asked at the last or at the first moment that it may have been."""
        asked = standing.attempt_until or NOW
        if mind.past and standing.attempt_until is not None:
            asked += self.rules.absence_wait
        return Seen(mind.verdict, _SEQUENCE, asked, receipt)

    # -- a person and the caller

    def cancel(self, op: Op, by: Actor) -> Decision:
        return self._ask(("cancel", op, by), lambda s: self.core.cancel(s, by=by))

    def act(self, name: str, op: Op, mind: Mind | None) -> Decision:
        """A person's act: "take", "confirm", "requeue", "compensate" or "close"."""

        def ask(standing: Standing) -> Move | Refused:
            if mind is None:
                return self.core.take(self.rules, standing)
            seen = self.seen(standing, mind, op.receipt)
            if name == "confirm":
                return self.core.confirm(standing, seen)
            if name == "requeue":
                return self.core.requeue(standing, seen)
            return (self.core.compensate if name == "compensate" else self.core.close)(self.rules, standing, seen)

        return self._ask(("act", name, op, mind), ask)

    def look_first(self, op: Op) -> Decision:
        return self._ask(("look first", op), lambda s: self.core.look_first(self.rules, s))

    def replay(self, op: Op, edit: bool) -> Decision:
        decision = self._ask(("replay", op, edit), lambda s: self.core.replay(self.rules, s))
        if decision.op is None or not edit:
            return decision
        return decision._replace(op=decision.op._replace(revision=op.revision + 1))

    # -- the statements

    def _ask(self, key: tuple[Any, ...], ask: Callable[[Standing], object], attempt: int = 0) -> Decision:
        found: Decision | None = self._answers.get(key)
        if found is None:
            self.asked += 1
            op: Op = key[1] if isinstance(key[1], Op) else key[2]
            found = self._answers[key] = written(op, ask(self.standing(op)), attempt)
        return found
