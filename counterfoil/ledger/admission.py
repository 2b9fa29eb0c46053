"""Admitting operations: which of a batch of records a session may run now, each with its attempt counted and committed.

The statement checks everything itself (state, due time, revision, bytes, tries, doubt, the session's lease); what it leaves is
told apart here, and what core decides about an operation that may not be admitted is written in the same transaction.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from enum import Enum
from typing import Any, NamedTuple
from uuid import UUID

import orjson
from sqlalchemy import Connection

from counterfoil.core import decisions
from counterfoil.core.chain import event_content
from counterfoil.core.events import EventKind
from counterfoil.core.reasons import Reason
from counterfoil.core.standing import Rules
from counterfoil.ledger.arrays import columns
from counterfoil.ledger.decided import Decided
from counterfoil.ledger.moves import Noted, Writer, Written, lock
from counterfoil.ledger.statements.admitting import ADMIT, CANDIDATE

__all__ = ["Admission", "Admitted", "Candidate", "LeaseOver", "Why", "admit"]


class Candidate(NamedTuple):
    """A command record whose operation asks to be admitted. `value_hash` is the sha256 of the record's own bytes."""

    number: int
    revision: int
    value_hash: bytes
    road: str  #: last word of its topic
    partition: int
    offset: int


class Admitted(NamedTuple):
    """An attempt that is counted and committed once the transaction is. `until`: the end of its maximum run time."""

    number: int
    operation_id: UUID
    attempt: int
    revision: int
    generation: int
    until: datetime


class Why(Enum):
    """Why a record's operation was not admitted."""

    COMPLETED = "completed"  #: a redelivery: there is nothing to do but commit
    COPY = "copy"  #: another record of an operation that needs none
    NOT_DUE = "not_due"  #: the due sweeper sends it again in time
    MOVED = "moved"  #: it may not be admitted: it was moved on, with the reason
    REVISION = "revision"  #: not the ledger's current revision
    DIGEST = "digest"  #: not the bytes, or not the type, that the ledger has
    UNKNOWN = "unknown"  #: no ledger row


class LeaseOver(Exception):
    """The session's lease is over; nothing was admitted."""


class Admission(NamedTuple):
    """What became of a batch, by operation number; `moved` are those whose operation was moved on."""

    admitted: dict[int, Admitted]
    left: dict[int, Why]
    moved: list[Written]


def admit(
    connection: Connection,
    writer: Writer,
    session: int,
    rules: Rules,
    candidates: Sequence[Candidate],
    unheard: Mapping[int, Admitted] | None = None,
) -> Admission:
    """Admits what may run, in one statement. Numbers must be distinct. Raises LeaseOver.

    `unheard` is what an earlier run of the caller's unit admitted before its commit was lost: where the ledger has exactly that
    attempt, the commit was applied after all, and the attempt is the caller's (D89).
    """
    unheard = unheard or {}
    rows = connection.execute(ADMIT, _parameters(writer, session, rules, candidates)).all()
    admitted: dict[int, Admitted] = {}
    left: dict[int, Why] = {candidate.number: Why.UNKNOWN for candidate in candidates}
    blocked: list[int] = []
    notes: list[Noted] = []
    for row in rows:
        if row.number_of_attempt is not None:
            del left[row.number]
            admitted[row.number] = Admitted(
                row.number, row.operation_id, row.number_of_attempt, row.revision, row.generation, row.until
            )
        elif not row.alive:
            raise LeaseOver
        elif (own := unheard.get(row.number)) is not None and _is(own, row):
            del left[row.number]
            admitted[row.number] = own
        else:
            why = left[row.number] = _why(row)
            if why is Why.MOVED:
                blocked.append(row.number)
            elif why in (Why.COMPLETED, Why.COPY):
                notes.append(_seen_again(row, why))
    moved = _move_on(connection, writer, rules, blocked, left)
    writer.tell(connection, notes)
    return Admission(admitted, left, moved)


def _parameters(writer: Writer, session: int, rules: Rules, candidates: Sequence[Candidate]) -> dict[str, Any]:
    secret, dumps = writer.ledger.secret, orjson.dumps
    rows = []
    for candidate in candidates:
        number, revision, value_hash, road, partition, offset = candidate
        detail = dumps({"offset": offset, "partition": partition, "road": road, "session": session})
        content = event_content(secret, "admitted", "admitted", detail)
        rows.append((number, revision, value_hash, road, partition, offset, detail.decode(), content))
    horizon: timedelta | None = rules.horizon
    return {
        **columns(CANDIDATE, rows),
        "c_session": session,
        "c_type": rules.name,
        "c_secret": writer.ledger.secret_id,
        "c_run_time": rules.timeout,
        "c_guard": rules.version_guard,
        "c_keyed": rules.keyed,
        "c_horizon": horizon,
        "c_margin": rules.landing,
    }


def _is(own: Admitted, row: Any) -> bool:
    """Whether the attempt that runs is this one: no other has the same end of its run time, to the microsecond."""
    return bool(row.state == "running" and row.again and (row.attempt, row.attempt_until) == (own.attempt, own.until))


def _why(row: Any) -> Why:
    waiting = row.state in ("queued", "retry_wait")
    if not row.ours:
        return Why.DIGEST
    if not row.current:
        return Why.REVISION
    if not row.same:
        return Why.DIGEST
    if waiting:
        return Why.MOVED if row.due else Why.NOT_DUE
    return Why.COMPLETED if row.again else Why.COPY


def _seen_again(row: Any, why: Why) -> Noted:
    if why is Why.COMPLETED:
        return Noted(row.number, EventKind.REDELIVERED, Reason.REDELIVERED.value, row.attempt)
    return Noted(row.number, EventKind.COPIED, Reason.COPIED.value, row.attempt)


def _move_on(connection: Connection, writer: Writer, rules: Rules, numbers: Sequence[int], left: dict[int, Why]) -> list[Written]:
    """Operations that wait and are due, but may not be admitted: core says what becomes of them."""
    if not numbers:
        return []
    locked = lock(connection, numbers)
    decided = []
    for number, standing in locked.standings.items():
        move = decisions.not_admissible(rules, standing, now=locked.now)
        if move is None:
            left[number] = Why.NOT_DUE
        else:
            decided.append(Decided(standing, locked.facts[number], move))
    return writer.write(connection, locked.now, decided)
