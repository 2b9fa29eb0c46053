"""Plans: a selection of dead letters, frozen, and what becomes of each of them, exactly once.

An item changes in the transaction that changes its dead letter. Whatever is killed, what is committed is done and what is not is
still waiting; items that another run is at are passed over.
"""

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

import orjson
from sqlalchemy import Connection, Engine, select, text, update

from counterfoil.core.chain import event_content
from counterfoil.core.dead_letters import Chosen
from counterfoil.core.decisions import Grounds, Move
from counterfoil.core.errors import Refused
from counterfoil.core.reasons import Reason
from counterfoil.core.shards import shard
from counterfoil.core.standing import Standing
from counterfoil.ledger.arrays import columns
from counterfoil.ledger.decided import Facts
from counterfoil.ledger.moves import NEVER, Locked, standing_of
from counterfoil.ledger.names import Ledger
from counterfoil.ledger.statements.dead_letters import frozen
from counterfoil.ledger.statements.moving import STANDING
from counterfoil.ledger.statements.replaying import (
    CANARY,
    FAILED,
    LOOK,
    PEEK,
    PROGRESS,
    REFUSALS,
    REPLAY,
    RUN_AGAIN,
    SETTLE,
    SETTLED,
    TAKE,
)
from counterfoil.ledger.tables import ledger_time, payload, state
from counterfoil.ledger.tables_dead_letters import plan
from counterfoil.ledger.tables_records import raw_record

#: Dead letters that one statement freezes.
FROZEN_AT_ONCE = 20_000
#: After this a replayed operation's record is looked for, in case it was lost.
_RESEND_AFTER = timedelta(seconds=60)


@dataclass(frozen=True, slots=True)
class Plan:
    """A plan as the ledger keeps it."""

    id: int
    at: datetime
    actor: str
    reason: str
    filter: dict[str, Any]
    cutoff: datetime
    grounds: str | None
    consumer: str | None
    status: str
    selected: int
    digest: bytes | None
    preview: dict[str, Any] | None
    finished_at: datetime | None

    @property
    def rests_on(self) -> Grounds | None:
        """What the person said has changed for all of it; None: only what was corrected is sent."""
        return None if self.grounds is None else Grounds(self.grounds)


class Item(NamedTuple):
    """One dead letter of a plan. `sequence` was frozen; `revision` is the one that failed."""

    position: int
    dead_letter: int
    number: int | None
    raw: UUID | None
    sequence: int
    revision: int
    replays: int


class Progress(NamedTuple):
    """How many of a plan's items wait, are done and were refused."""

    waiting: int
    done: int
    refused: int


class Canary(NamedTuple):
    """Of the operations that a plan let run: still under way; quarantined again, in doubt or waiting for a person."""

    under_way: int
    failed: int


_PLAN = tuple(plan.c[name] for name in Plan.__dataclass_fields__)


def freeze(
    engine: Engine, chosen: Chosen, *, reason: str, grounds: Grounds | None, consumer: str | None, tell: Callable[[int], None]
) -> int:
    """Writes a plan and all its items, a batch a transaction; answers its id. `tell` is called with how many there are so far.

    What was quarantined after the plan's own time is not in it. Killed half way, the plan stays "freezing" and can never run.
    """
    with engine.begin() as connection:
        new = plan.insert().values(
            at=ledger_time,
            actor=text("session_user"),
            reason=reason,
            filter=chosen.told(),
            cutoff=ledger_time,
            grounds=grounds.value if grounds else None,
            consumer=consumer,
            status="freezing",
        )
        number, cutoff = connection.execute(new.returning(plan.c.id, plan.c.cutoff)).one()
    selected, after, digest = 0, 0, hashlib.sha256()
    while True:
        with engine.begin() as connection:
            part = frozen(number, chosen, after=after, position=selected, cutoff=cutoff, limit=FROZEN_AT_ONCE)
            count, last, said = connection.execute(part).one()
        selected, after = selected + count, last or after
        if count:
            digest.update(bytes(said))
            tell(selected)
        if count < FROZEN_AT_ONCE:
            break
    status = "frozen" if selected else "done"
    with engine.begin() as connection:
        done = update(plan).where(plan.c.id == number)
        connection.execute(done.values(status=status, selected=selected, digest=digest.digest()))
    return int(number)


def read(connection: Connection, number: int) -> Plan:
    """One plan. Raises Refused for an unknown one."""
    row = connection.execute(select(*_PLAN).where(plan.c.id == number)).one_or_none()
    if row is None:
        raise Refused(Reason.UNKNOWN_PLAN, subject=str(number))
    return Plan(*row)


def newest(connection: Connection, *, limit: int, before: int | None = None) -> list[Plan]:
    """Newest first."""
    wanted = select(*_PLAN).order_by(plan.c.id.desc()).limit(limit)
    return [Plan(*row) for row in connection.execute(wanted if before is None else wanted.where(plan.c.id < before))]


def set_status(connection: Connection, number: int, status: str, *, unless: Sequence[str] = ()) -> bool:
    """Whether it was changed: not where it is one of `unless`."""
    values: dict[str, Any] = {"status": status}
    if status in {"done", "stopped"}:
        values["finished_at"] = ledger_time
    changed = update(plan).where(plan.c.id == number, plan.c.status.not_in([*unless, status])).values(values)
    return connection.execute(changed.returning(plan.c.id)).one_or_none() is not None


def keep_preview(connection: Connection, number: int, preview: dict[str, Any]) -> None:
    """What would be sent and what is refused, as it was counted now."""
    connection.execute(update(plan).where(plan.c.id == number).values(preview=preview))


def take(connection: Connection, number: int, limit: int) -> list[Item]:
    """The next items, held to the end of the transaction; none where the plan was stopped meanwhile."""
    status = connection.execute(select(plan.c.status).where(plan.c.id == number).with_for_update(read=True)).scalar_one()
    if status != "running":
        return []
    return [Item(*row) for row in connection.execute(TAKE, {"plan": number, "limit": limit})]


def peek(connection: Connection, number: int, *, after: int, limit: int) -> list[Item]:
    """Waiting items in order, not taken."""
    return [Item(*row) for row in connection.execute(PEEK, {"plan": number, "after": after, "limit": limit})]


def settled(connection: Connection, number: int, came_to: Iterable[tuple[int, str, str | None]]) -> None:
    """What became of items that were taken: position, "done" or "refused", and why refused."""
    connection.execute(SETTLED, {**columns(SETTLE, came_to), "plan": number})


def progress(connection: Connection, number: int) -> Progress:
    """Counts of its items."""
    return Progress(*connection.execute(PROGRESS, {"plan": number}).one())


def refusals(connection: Connection, number: int) -> dict[str, int]:
    """Reasons of refused items, with counts."""
    return {row[0]: row[1] for row in connection.execute(REFUSALS, {"plan": number})}


def canary(connection: Connection, number: int, since: datetime) -> Canary:
    """What became of the first operations that it let run; those that failed before `since` were told of then."""
    return Canary(*connection.execute(CANARY, {"plan": number, "since": since}).one())


def failed(connection: Connection, number: int, since: datetime) -> int:
    """How many of the operations that it let run are quarantined again since a moment."""
    return int(connection.execute(FAILED, {"plan": number, "since": since}).scalar_one())


def look(connection: Connection, numbers: Iterable[int]) -> Locked:
    """Operations as they stand now, without a lock: for a preview."""
    rows = connection.execute(LOOK, columns(["l_number"], [(number,) for number in sorted(set(numbers))])).all()
    standings = {row[0]: standing_of(row) for row in rows}
    return Locked(rows[0].now if rows else NEVER, standings, {row[0]: Facts._make(row[len(STANDING) : -1]) for row in rows})


def current_values(connection: Connection, numbers: Iterable[int]) -> dict[int, bytes]:
    """The bytes of the current revision of each operation."""
    asked = list(numbers)
    rows = connection.execute(
        select(state.c.number, payload.c.value)
        .join(payload, (payload.c.number == state.c.number) & (payload.c.revision == state.c.revision))
        .where(state.c.number.in_(asked))
    )
    return {row.number: bytes(row.value) for row in rows}


def has_bytes(connection: Connection, number: int, value_hash: bytes) -> bool:
    """Whether a revision of the operation has exactly these bytes."""
    there = select(payload.c.revision).where(payload.c.number == number, payload.c.value_hash == value_hash).limit(1)
    return connection.execute(there).one_or_none() is not None


def set_raw(connection: Connection, ids: Sequence[UUID], status: str) -> set[UUID]:
    """Quarantined raw records that are released or discarded; answers those that still were quarantined."""
    if not ids:
        return set()
    moved = update(raw_record).where(raw_record.c.id.in_(list(ids)), raw_record.c.status == "quarantined").values(status=status)
    return set(connection.execute(moved.returning(raw_record.c.id)).scalars())


class Again(NamedTuple):
    """An operation to let run again, as it was decided on."""

    standing: Standing
    facts: Facts
    move: Move
    detail: dict[str, Any]


def run_again(connection: Connection, ledger: Ledger, now: datetime, again: Sequence[Again]) -> set[int]:
    """Out of quarantine into queued, with the command record in the outbox; answers the numbers of those that were let run."""
    if not again:
        return set()
    rows = []
    for standing, facts, move, told in again:
        detail = orjson.dumps(told, option=orjson.OPT_SORT_KEYS)
        key = facts.entity.encode()
        content = event_content(ledger.secret, str(move.kind), move.reason, detail)
        rows.append(
            (
                standing.number,
                standing.sequence,
                move.granted,
                1 if move.new_key else 0,
                shard(key),
                facts.operation_id,
                facts.type,
                key,
                facts.traceparent,
                detail.decode(),
                content,
            )
        )
    wait = {"r_now": now, "r_wait": _RESEND_AFTER, "r_secret": ledger.secret_id}
    return set(connection.execute(RUN_AGAIN, {**columns(REPLAY, rows), **wait}).scalars())
