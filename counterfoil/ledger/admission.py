"""Admitting operations: which of a batch of records a session may run now, each with its attempt counted and committed.

The statement checks everything itself (state, due time, revision, bytes, tries, doubt, the session's lease); what it leaves is
told apart here, and what core decides about an operation that may not be admitted is written in the same transaction. For a type
with an order the entities are locked before it, so that no operation is told to wait for one that is over (H1).
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
from counterfoil.core.decisions.ordering import FREE, Turn
from counterfoil.core.events import EventKind
from counterfoil.core.order import Ordering
from counterfoil.core.reasons import Reason
from counterfoil.core.standing import Rules
from counterfoil.ledger import ordering
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
    position: int | None = None  #: number within the entity; Strict only


class Why(Enum):
    """Why a record's operation was not admitted."""

    COMPLETED = "completed"  #: a redelivery: there is nothing to do but commit
    COPY = "copy"  #: another record of an operation that needs none
    NOT_DUE = "not_due"  #: the due sweeper sends it again in time
    WAITS = "waits"  #: for another operation of its entity; whoever frees the entity sends it again
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
    if rules.ordered:
        ordering.hold(connection, [candidate.number for candidate in candidates])
    rows = connection.execute(ADMIT[rules.ordering], _parameters(writer, session, rules, candidates)).all()
    admitted: dict[int, Admitted] = {}
    left: dict[int, Why] = {candidate.number: Why.UNKNOWN for candidate in candidates}
    blocked: dict[int, Turn] = {}
    notes: list[Noted] = []
    for row in rows:
        if row.number_of_attempt is not None:
            del left[row.number]
            admitted[row.number] = _admitted(rules, row)
        elif not row.alive:
            raise LeaseOver
        elif (own := unheard.get(row.number)) is not None and _is(own, row):
            del left[row.number]
            admitted[row.number] = own
        else:
            why = left[row.number] = _why(row)
            if why is Why.MOVED:
                blocked[row.number] = _turn(rules, row)
            elif why in (Why.COMPLETED, Why.COPY):
                notes.append(_seen_again(row, why))
    if rules.ordering is Ordering.LATEST_WINS:
        for number in _overtaken(connection, rows, admitted, blocked):
            blocked.setdefault(number, Turn(newer=True))
    moved = _move_on(connection, writer, rules, blocked, left)
    writer.tell(connection, notes)
    return Admission(admitted, left, moved)


def _admitted(rules: Rules, row: Any) -> Admitted:
    position = row.position if rules.ordering is Ordering.STRICT else None
    return Admitted(row.number, row.operation_id, row.number_of_attempt, row.revision, row.generation, row.until, position)


def _turn(rules: Rules, row: Any) -> Turn:
    """What the entity said about an operation that was not admitted."""
    if not rules.ordered or row.line is None:
        return FREE
    return Turn(bool(row.passed), bool(row.newer), row.behind, row.landed)


def _overtaken(
    connection: Connection, rows: Sequence[Any], admitted: Mapping[int, Admitted], blocked: Mapping[int, Turn]
) -> list[int]:
    """Older versions that were told to wait, now that a newer one was admitted or waits in their place."""
    there = [row for row in rows if row.line is not None and (row.number in admitted or row.number in blocked)]
    return ordering.older(connection, [(row.line, row.position) for row in there if not row.passed and not row.newer])


def _parameters(writer: Writer, session: int, rules: Rules, candidates: Sequence[Candidate]) -> dict[str, Any]:
    secret, dumps = writer.ledger.secret, orjson.dumps
    rows = []
    for candidate in candidates:
        number, revision, value_hash, road, partition, offset = candidate
        detail = dumps({"offset": offset, "partition": partition, "road": road, "session": session})
        content = event_content(secret, "admitted", "admitted", detail)
        rows.append((number, revision, value_hash, road, partition, offset, detail.decode(), content))
    horizon: timedelta | None = rules.horizon
    landing = {"c_absence": rules.absence_wait} if rules.ordered else {}
    return {
        **columns(CANDIDATE, rows),
        **landing,
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


def _move_on(
    connection: Connection, writer: Writer, rules: Rules, turns: Mapping[int, Turn], left: dict[int, Why]
) -> list[Written]:
    """Operations that are due, but may not be admitted: core says what becomes of them, or what they have to wait for."""
    if not turns:
        return []
    locked = lock(connection, turns)
    decided, waiting = [], []
    for number, standing in locked.standings.items():
        turn = turns[number]
        move = decisions.not_admissible(rules, standing, now=locked.now, turn=turn)
        if move is not None:
            decided.append(Decided(standing, locked.facts[number], move))
            continue
        later = ordering.look_at(rules, turn, standing, locked.now)
        if later is not None:
            waiting.append((number, later))
        if number in left:
            left[number] = Why.NOT_DUE if later is None else Why.WAITS
    ordering.tell_to_wait(connection, waiting)
    return writer.write(connection, locked.now, decided)
