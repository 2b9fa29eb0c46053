"""Writing what core decided: transitions with their events, state records and dead letters, N of them in one statement.

Nothing is decided here. A move whose sequence is no longer the ledger's is void: somebody else was first.
"""

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple
from uuid import UUID

import orjson
from sqlalchemy import Connection

from counterfoil.core.chain import event_content
from counterfoil.core.decisions import Kept
from counterfoil.core.events import EventKind
from counterfoil.core.outcomes import AttemptOutcome
from counterfoil.core.raised import Raised
from counterfoil.core.records import Digest, Receipt
from counterfoil.core.roads import STATE
from counterfoil.core.shards import shard
from counterfoil.core.standing import Standing
from counterfoil.core.states import State
from counterfoil.core.transitions import is_reported
from counterfoil.failpoints import failpoint
from counterfoil.ledger.arrays import columns
from counterfoil.ledger.dead_letters import DeadLetterWords, dead_letters
from counterfoil.ledger.decided import Decided, Facts
from counterfoil.ledger.names import Ledger
from counterfoil.ledger.ordering import Left, follow
from counterfoil.ledger.statements.moving import LOCK, MOVE, NOTE, OUT, STANDING, TELL, WRITE


class StateLine(NamedTuple):
    """The content of one state record (it has no payload). `time` is the ledger's."""

    epoch: int
    sequence: int
    type: str
    entity: str
    version: str | None
    state: str
    attempt: int
    revision: int
    remote_id: str | None
    reason: str
    time: datetime


class Written(NamedTuple):
    """What was written of one operation: for its line in the log, once that is committed. `state` None: it is as it was."""

    operation_id: UUID
    type: str
    attempt: int
    kind: EventKind
    state: State | None
    reason: str
    raised: Raised | None = None  #: where its effect raised


class Noted(NamedTuple):
    """An event that changes no state. `due_now`: its next step comes now; `applied`: that attempt reached the sink."""

    number: int
    kind: EventKind
    reason: str
    attempt: int
    detail: dict[str, Any] | None = None
    due_now: bool = False
    applied: bool = False

    @classmethod
    def of(cls, number: int, kept: Kept, attempt: int, detail: dict[str, Any] | None = None) -> "Noted":
        """What core decided to keep as evidence."""
        return cls(number, kept.kind, kept.reason, attempt, detail, kept.due_now, kept.applied)


class Locked(NamedTuple):
    """Operations as they stood when their rows were locked, and the ledger's time then."""

    now: datetime
    standings: dict[int, Standing]
    facts: dict[int, Facts]


def lock(connection: Connection, numbers: Iterable[int]) -> Locked:
    """The locking step: locks the rows in the order of their numbers. Unknown numbers are left out."""
    asked = sorted(set(numbers))
    rows = connection.execute(LOCK, columns(["l_number"], [(number,) for number in asked])).all()
    standings = {row[0]: standing_of(row) for row in rows}
    facts = {row[0]: Facts._make(row[_STANDING:-1]) for row in rows}
    return Locked(rows[0].now if rows else NEVER, standings, facts)


#: The time of a lock that locked nothing: nothing is decided on it.
NEVER = datetime.min.replace(tzinfo=UTC)
_STATE = {str(member): member for member in State}
_OUTCOME = {str(member): member for member in AttemptOutcome}
_STANDING = len(STANDING)


def standing_of(row: Sequence[Any]) -> Standing:
    """A row that begins with the columns STANDING, by their places: names cost twice as much, for every operation."""
    number, at, sequence, attempt, tries_left, revision, generation, outcome, since, *rest = row[:_STANDING]
    doubtful_revision, doubtful_generation, unresolved, admitted_at, until, session, cancel_asked, accepted_risk = rest
    return Standing(
        number,
        _STATE[at],
        sequence,
        attempt,
        tries_left,
        revision,
        generation,
        None if outcome is None else _OUTCOME[outcome],
        since,
        None if since is None else (doubtful_revision, doubtful_generation),
        unresolved,
        admitted_at,
        until,
        session,
        cancel_asked,
        accepted_risk,
    )


class Writer:
    """Saves decisions for one ledger. `encode` makes a state record's value, `words` a dead letter's headers."""

    def __init__(self, ledger: Ledger, encode: Callable[[StateLine], bytes], words: DeadLetterWords) -> None:
        self.ledger = ledger
        self._encode = encode
        self._words = words

    def write(self, connection: Connection, now: datetime, decided: Sequence[Decided]) -> list[Written]:
        """Writes the moves, and what follows for their entities; answers those still on the sequence they were decided on."""
        if not decided:
            return []
        moves = [self._move(one) for one in decided]
        quarantined = [one for one in decided if one.move.to is State.QUARANTINED]
        letters = dead_letters(connection, self.ledger, self._words, quarantined)
        out = [self._record(now, one) for one in decided if is_reported(one.move.to)] + letters
        parameters = {
            **columns(MOVE, moves),
            **columns(OUT, out),
            "m_now": now,
            "m_secret": self.ledger.secret_id,
        }
        rows = connection.execute(WRITE, parameters).all()
        there = {row[0] for row in rows}
        if any(row[1] is not None for row in rows):
            to = {one.standing.number: one.move.to for one in decided}
            follow(connection, self.ledger, now, [Left(row[0], row[1], row[2], to[row[0]]) for row in rows])
        if letters:
            failpoint("dead_letter.before_commit")
        return [
            Written(facts.operation_id, facts.type, standing.attempt, move.kind, move.to, move.reason)
            for standing, facts, move, *_ in decided
            if standing.number in there
        ]

    def tell(self, connection: Connection, notes: Sequence[Noted]) -> None:
        """Writes events that change no state; one an operation."""
        if notes:
            rows = [
                (
                    note.number,
                    str(note.kind),
                    note.reason,
                    note.attempt,
                    *self._told(note.kind, note.reason, note.detail),
                    note.due_now,
                    note.applied,
                )
                for note in notes
            ]
            connection.execute(TELL, {**columns(NOTE, rows), "n_secret": self.ledger.secret_id})

    def _told(self, kind: EventKind, reason: str, detail: dict[str, Any] | None) -> tuple[str | None, bytes]:
        text = orjson.dumps(detail, option=orjson.OPT_SORT_KEYS) if detail else b""
        return text.decode() or None, event_content(self.ledger.secret, str(kind), reason, text)

    def _move(self, one: Decided) -> tuple[Any, ...]:
        standing, move, receipt = one.standing, one.move, one.receipt
        detail, content = self._told(move.kind, move.reason, one.detail)
        return (
            standing.number,
            standing.sequence,
            str(move.to),
            str(move.kind),
            move.reason,
            str(move.outcome) if move.outcome is not None else None,
            None if move.wait is None else move.wait.total_seconds(),
            move.not_before_wait,
            move.try_back + move.granted,
            -1 if move.doubt_over else move.doubt + 2 * move.resolved,
            move.risk,
            standing.attempt,
            receipt.remote_id if receipt else None,
            version_text(receipt),
            receipt.sink_time if receipt else None,
            one.result_key,
            detail,
            content,
        )

    def _record(self, now: datetime, one: Decided) -> tuple[Any, ...]:
        standing, facts, move = one.standing, one.facts, one.move
        key = str(facts.operation_id).encode()
        line = StateLine(
            self.ledger.epoch,
            standing.sequence + 1,
            facts.type,
            facts.entity,
            facts.version,
            str(move.to),
            standing.attempt,
            standing.revision,
            (one.receipt.remote_id if one.receipt else None) or facts.remote_id,
            move.reason,
            now,
        )
        return (
            standing.number,
            shard(key),
            STATE,
            facts.type,
            facts.operation_id,
            standing.revision,
            key,
            self._encode(line),
            None,
            facts.traceparent,
        )


def version_text(receipt: Receipt | None) -> str | None:
    """A receipt's version as the ledger keeps it: an integer, or the digest as `algorithm:hex`."""
    if receipt is None or receipt.version is None:
        return None
    version = receipt.version
    return f"{version.algorithm}:{version.value.hex()}" if isinstance(version, Digest) else str(version)
