"""Running a plan: one, then ten, then the rest at the asked rate; stopped on failures; resumed exactly where it was killed.

Each step is one transaction: items taken, operations moved, items settled. Two runs of one plan share its items. It waits on
nothing but the ledger; what the workers make of what was sent is read there.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple, TypeVar

from sqlalchemy import Connection, Engine, select

from counterfoil.core.acts import Action
from counterfoil.core.errors import Refused
from counterfoil.core.reasons import Reason
from counterfoil.failpoints import failpoint
from counterfoil.ledger import acts, plans
from counterfoil.ledger.decided import Decided
from counterfoil.ledger.engine import in_transaction
from counterfoil.ledger.moves import Locked, Writer
from counterfoil.ledger.plans import Again, Plan, Progress
from counterfoil.ledger.server import login
from counterfoil.ledger.tables import ledger_time
from counterfoil.streams.dead_letters.judging import Judge, Judged

AT_ONCE = 500  #: items of one transaction
LOOK_EVERY = 1.0  #: seconds between two looks at what has failed
CANARY = (1, 11)  #: how many are out after each stage: one, then ten more


class End(StrEnum):
    """How a run ended, and what that means."""

    meaning: str

    def __new__(cls, code: str, meaning: str) -> End:
        member = str.__new__(cls, code)
        member._value_ = code
        member.meaning = meaning
        return member

    DONE = "done", "every dead letter of the plan is done or was refused"
    NOTHING_LEFT = "nothing_left", "the plan was done before; nothing was sent"
    FAILED = "failed", "too many came back: the rest waits; run it again once the cause is gone"
    CANARY_FAILED = "canary_failed", "one of the first came back or is in doubt: the rest waits"
    CANARY_WAITS = "canary_waits", "the first have no outcome yet: see that a worker and the relay run, then run it again"
    STOPPED = "stopped", "a person stopped the plan"


@dataclass(frozen=True, slots=True)
class Pace:
    """How a plan is run."""

    rate: float | None = 100.0  #: a second; None: as fast as it goes
    stop_after: int = 10  #: failures since the run began
    canary: bool = True
    canary_wait: float = 60.0  #: seconds for the first to have an outcome


class Ended(NamedTuple):
    """A run's end, and where the plan is."""

    end: End
    progress: Progress
    sent: int  #: by this run
    failed: int  #: since it began


T = TypeVar("T")
Tell = Callable[[Progress], None]
Wait = Callable[[float], object]


class Run:
    """One run of one plan, for one act, by the login of the engine's sessions."""

    def __init__(self, engine: Engine, writer: Writer, judge: Judge, plan: Plan, act: Action, reason: str) -> None:
        self._engine = engine
        self._writer = writer
        self._judge = judge
        self._plan = plan
        self._act = act
        self._reason = reason
        self._sent = 0

    def run(self, pace: Pace, tell: Tell, wait: Wait = time.sleep) -> Ended:
        """Until the plan is done or something stops it. Raises Refused for a plan that cannot run."""
        since = in_transaction(self._engine, self._begin)
        if since is None:
            return Ended(End.NOTHING_LEFT, self._read(self._progress), 0, 0)
        end = self._stages(pace, since, tell, wait) if pace.canary and self._act is Action.REPLAY else None
        end = end or self._rest(pace, since, tell, wait)
        return in_transaction(self._engine, lambda connection: self._finish(connection, end, since))

    def _begin(self, connection: Connection) -> datetime | None:
        """The ledger's time; None where nothing is left. The run is an act, also where it is killed."""
        plan = plans.read(connection, self._plan.id)
        if plan.status == "freezing":
            raise Refused(Reason.PLAN_NOT_FROZEN, subject=str(plan.id))
        if plan.status == "stopped":
            raise Refused(Reason.PLAN_STOPPED, subject=str(plan.id))
        if plan.status == "done":
            return None
        resumed = not plans.set_status(connection, plan.id, "running")
        told = {"plan": plan.id, "grounds": plan.grounds, "consumer": plan.consumer, "selected": plan.selected}
        result = "resumed" if resumed else "begun"
        acts.record(connection, self._writer.ledger, self._act, f"plan {plan.id}", self._reason, result, detail=told)
        now: datetime = connection.execute(select(ledger_time)).scalar_one()
        return now

    def _stages(self, pace: Pace, since: datetime, tell: Tell, wait: Wait) -> End | None:
        """One, then ten more; None: all of them ended well, or everything is out."""
        for out in CANARY:
            done = self._read(self._progress).done
            if done < out:
                self._step(out - done)
            now = self._read(self._progress)
            tell(now)
            if now.waiting == 0:
                return None
            end = self._outcome(pace, since, wait)
            if end is not None:
                return end
        return None

    def _outcome(self, pace: Pace, since: datetime, wait: Wait) -> End | None:
        until = time.monotonic() + pace.canary_wait
        while True:
            canary = self._read(lambda connection: plans.canary(connection, self._plan.id, since))
            if canary.failed:
                return End.CANARY_FAILED
            if not canary.under_way:
                return None
            if self._stopped():
                return End.STOPPED
            if time.monotonic() >= until:
                return End.CANARY_WAITS
            wait(0.2)

    def _rest(self, pace: Pace, since: datetime, tell: Tell, wait: Wait) -> End:
        begun, out, looked = time.monotonic(), 0, 0.0
        while True:
            now = time.monotonic()
            if now >= looked:
                if self._failed(since) >= pace.stop_after:
                    return End.FAILED
                looked = time.monotonic() + max(LOOK_EVERY, 10 * (time.monotonic() - now))
                tell(self._read(self._progress))
            allowed = AT_ONCE
            if pace.rate is not None:
                due = (now - begun) * pace.rate + 1 - out
                if due > pace.rate:  # it could not keep up: no burst afterwards
                    begun, out, due = now, 0, pace.rate
                allowed = min(AT_ONCE, int(due))
                if allowed < 1:
                    wait(min((1 - due) / pace.rate, LOOK_EVERY))
                    continue
            taken = self._step(allowed)
            out += taken
            if taken == 0:
                if self._stopped():
                    return End.STOPPED
                if self._read(self._progress).waiting == 0:
                    return End.DONE
                wait(0.1)  # another run is at the last ones

    def _step(self, count: int) -> int:
        """Take, move and settle at most so many, in one transaction; answers how many were taken."""

        def unit(connection: Connection) -> tuple[int, int]:
            items = plans.take(connection, self._plan.id, count)
            if not items:
                return 0, 0
            locked, judged = self._judge.judge(connection, self._act, self._plan, items, held=True)
            done = self._write(connection, locked, judged)
            came_to = [
                (one.item.position, "done", None)
                if one.item.position in done
                else (one.item.position, "refused", (one.refused or Reason.SOMEBODY_WAS_FIRST).value)
                for one in judged
            ]
            plans.settled(connection, self._plan.id, came_to)
            failpoint("replay.before_commit")
            return len(items), len(done)

        taken, moved = in_transaction(self._engine, unit)
        self._sent += moved
        failpoint("replay.after_commit")
        return taken

    def _write(self, connection: Connection, locked: Locked, judged: Sequence[Judged]) -> set[int]:
        """The positions of the items whose dead letter was moved."""
        told = {"plan": self._plan.id, "actor": login(connection), "why": self._reason}
        moves = [(one, one.facts, one.move) for one in judged if one.move is not None and one.facts is not None]
        numbers = {one.item.number: one.item.position for one, _, _ in moves}
        if self._act is Action.REPLAY:
            again = [
                Again(locked.standings[one.item.number or 0], facts, move, {**told, **self._grounds(one)})
                for one, facts, move in moves
            ]
            there = plans.run_again(connection, self._writer.ledger, locked.now, again)
            done = {numbers[number] for number in there}
        else:
            decided = [Decided(locked.standings[one.item.number or 0], facts, move, detail=told) for one, facts, move in moves]
            ids = {written.operation_id for written in self._writer.write(connection, locked.now, decided)}
            done = {one.item.position for one, facts, _ in moves if facts.operation_id in ids}
        raws = {one.raw: one.item.position for one in judged if one.raw is not None}
        gone = plans.set_raw(connection, list(raws), "released" if self._act is Action.REPLAY else "discarded")
        return done | {raws[cause] for cause in gone}

    def _grounds(self, one: Judged) -> dict[str, str]:
        told = {} if one.grounds is None else {"grounds": one.grounds.value}
        return told | ({} if self._plan.consumer is None else {"consumer": self._plan.consumer})

    def _finish(self, connection: Connection, end: End, since: datetime) -> Ended:
        progress = self._progress(connection)
        if end is End.DONE:
            plans.set_status(connection, self._plan.id, "done")
        failed = plans.failed(connection, self._plan.id, since)
        told = {"plan": self._plan.id, "sent": self._sent, "failed": failed, **progress._asdict()}
        acts.record(connection, self._writer.ledger, self._act, f"plan {self._plan.id}", self._reason, end.value, detail=told)
        return Ended(end, progress, self._sent, failed)

    def _progress(self, connection: Connection) -> Progress:
        return plans.progress(connection, self._plan.id)

    def _failed(self, since: datetime) -> int:
        return self._read(lambda connection: plans.failed(connection, self._plan.id, since))

    def _stopped(self) -> bool:
        return self._read(lambda connection: plans.read(connection, self._plan.id).status) == "stopped"

    def _read(self, ask: Callable[[Connection], T]) -> T:
        return in_transaction(self._engine, ask)
