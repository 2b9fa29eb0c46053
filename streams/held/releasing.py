"""A person lets held records go: a selection as it stood at the beginning, a batch at a time, each record once.

Killed half way, what is committed is let go and the rest is still held: the same again goes on. Two people at once share them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, Engine, select

from counterfoil.core.acts import Action
from counterfoil.core.dead_letters import Chosen
from counterfoil.core.errors import Refused
from counterfoil.core.reasons import Reason
from counterfoil.failpoints import failpoint
from counterfoil.ledger import acts, held, quarantine, releasing
from counterfoil.ledger.engine import in_transaction
from counterfoil.ledger.held import Line
from counterfoil.ledger.names import Ledger
from counterfoil.ledger.tables import ledger_time
from counterfoil.streams.held.taking_up import take_up

AT_ONCE = 500  #: records of one transaction; the whole headers are read of those without an operation
SUBJECT = "held records"


@dataclass
class Released:
    """What became of a selection. `incapable`: let go though no live worker can do them, so that one may hold them again."""

    let_go: int = 0
    incapable: int = 0
    refused: Counter[str] = field(default_factory=Counter)  #: by reason; they are still held, or quarantined (digest_mismatch)

    def told(self) -> dict[str, Any]:
        """As an act keeps it."""
        return {"let_go": self.let_go, "incapable": self.incapable, "refused": dict(self.refused)}

    def add(self, other: Released) -> None:
        """With what became of more of it."""
        self.let_go += other.let_go
        self.incapable += other.incapable
        self.refused += other.refused


def count(connection: Connection, chosen: Chosen) -> int:
    """How many held records a selection means. Raises Refused for an empty filter, and where nothing fits."""
    if chosen.empty:
        raise Refused(Reason.FILTER_EMPTY)
    found = sum(group.count for group in held.groups(connection, chosen))
    if not found:
        for cause in chosen.ids[:1]:
            if held.one(connection, cause).status != "held":
                raise Refused(Reason.NOT_HELD, subject=str(cause))
        raise Refused(Reason.NOTHING_HELD)
    return found


def release(
    engine: Engine, ledger: Ledger, chosen: Chosen, reason: str, review_within: timedelta, tell: Callable[[int], None]
) -> Released:
    """Lets go what is chosen; the act is written when it begins and when it ends. `tell` hears how many were looked at."""

    def begin(connection: Connection) -> datetime:
        told = {"filter": chosen.told(), "count": count(connection, chosen)}
        acts.record(connection, ledger, Action.RELEASE, SUBJECT, reason, "begun", detail=told)
        now: datetime = connection.execute(select(ledger_time)).scalar_one()
        return now

    cutoff = in_transaction(engine, begin)
    done, seen = Released(), 0
    after: tuple[datetime, UUID] | None = None
    while True:
        looked_at, stepped = in_transaction(engine, partial(_step, chosen, cutoff, after, review_within))
        if not looked_at:
            break
        after, seen = (looked_at[-1].at, looked_at[-1].cause), seen + len(looked_at)
        done.add(stepped)
        tell(seen)
    in_transaction(engine, lambda c: acts.record(c, ledger, Action.RELEASE, SUBJECT, reason, "done", detail=done.told()))
    return done


def _step(
    chosen: Chosen, cutoff: datetime, after: tuple[datetime, UUID] | None, review_within: timedelta, connection: Connection
) -> tuple[list[Line], Released]:
    """One batch in one transaction."""
    lines = held.batch(connection, chosen, cutoff=cutoff, after=after, limit=AT_ONCE)
    unnamed = [line.cause for line in lines if line.number is None]
    kept = quarantine.raw_records(connection, unnamed, values=False) if unnamed else {}
    taken = take_up(connection, {cause: one.headers for cause, one in kept.items()}, review_within)
    named = [line.cause for line in lines if line.number is not None]
    gone = taken.let_go + releasing.release(connection, named + taken.adopted)
    if gone or taken.given_up:
        failpoint("held.before_release_commit")
    away = {one.cause for one in gone} | {one.id for one in taken.given_up}
    here = [line for line in lines if line.cause not in away]
    refused = Counter((Reason.UNKNOWN_OPERATION_RECORD if one.number is None else Reason.NOT_HELD).value for one in here)
    refused += Counter({Reason.DIGEST_MISMATCH.value: len(taken.given_up)})
    return lines, Released(len(gone), sum(not one.capable for one in gone), refused)
