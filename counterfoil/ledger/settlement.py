"""Settling attempts: lock, ask core what each answer means, save all of it in one statement.

An effect in the ledger's own database runs between `lock` and `save`, on the same connection: no commit, no effect.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy import Connection

from counterfoil.core import decisions
from counterfoil.core.decisions import Answered, Kept, Move
from counterfoil.core.events import EventKind
from counterfoil.core.identity import result_key
from counterfoil.core.outcomes import AttemptOutcome
from counterfoil.core.standing import Rules, Standing
from counterfoil.core.states import State
from counterfoil.ledger.decided import Decided
from counterfoil.ledger.moves import Locked, Noted, Writer, lock

__all__ = ["Locked", "Result", "Saved", "already", "evidence", "holds", "lock", "save"]


class Result(NamedTuple):
    """The answer of one operation's attempt. `jitter` in [0, 1) spreads its retry."""

    number: int
    answered: Answered
    jitter: float = 0.5


def holds(standing: Standing | None, session: int, attempt: int) -> bool:
    """Whether this session's attempt still is the one that runs."""
    return (
        standing is not None and standing.state is State.RUNNING and standing.session == session and standing.attempt == attempt
    )


class Saved(NamedTuple):
    """What one run of a unit locked and decided; whether it was committed is not known where the answer was lost."""

    locked: Locked
    became: Mapping[int, Move | Kept]


def already(locked: Locked, earlier: Sequence[Saved]) -> dict[int, Move | Kept]:
    """The moves of earlier runs of the same unit that the ledger has: their commit was applied, and not answered (D89)."""
    there: dict[int, Move | Kept] = {}
    for before, became in earlier:
        for number, move in became.items():
            now, then = locked.standings.get(number), before.standings[number]
            if (
                now is not None
                and isinstance(move, Move)
                and (now.sequence, now.state, now.attempt, now.outcome)
                == (then.sequence + 1, move.to, then.attempt, move.outcome)
            ):
                there[number] = move
    return there


def save(
    connection: Connection, writer: Writer, rules: Rules, locked: Locked, results: Sequence[Result]
) -> dict[int, Move | Kept]:
    """Saves N answers on operations that `locked` holds; answers what each became. Unknown numbers are left out."""
    became: dict[int, Move | Kept] = {}
    decided: list[Decided] = []
    kept: list[Noted] = []
    for number, answered, jitter in results:
        standing = locked.standings.get(number)
        if standing is None:
            continue
        facts = locked.facts[number]
        move = decisions.settle(
            rules,
            standing,
            answered,
            now=locked.now,
            jitter=jitter,
            sampled=decisions.is_sampled(facts.operation_id, rules.share),
        )
        became[number] = move
        if isinstance(move, Move):
            done = answered.outcome is AttemptOutcome.DONE
            key = result_key(facts.operation_id) if done else None
            decided.append(Decided(standing, facts, move, answered.receipt, key, _detail(move, answered)))
        else:
            kept.append(Noted.of(number, move, answered.attempt, evidence(answered)))
    writer.write(connection, locked.now, decided)
    writer.tell(connection, kept)
    return became


def _detail(move: Move, answered: Answered) -> dict[str, Any] | None:
    """What the event says beside the move: the answer where a rule decided, where the effect raised, a retry's wait in s."""
    detail: dict[str, Any] = ({"cause": move.cause} if move.cause else {}) | _raised(answered)
    if move.kind is EventKind.RETRY_SCHEDULED and move.wait is not None:
        detail["wait"] = int(move.wait.total_seconds() * 1000) / 1000
    return detail or None


def evidence(answered: Answered) -> dict[str, str] | None:
    """What is kept of an answer that could no longer count."""
    receipt = answered.receipt
    named = {"remote_id": receipt.remote_id} if receipt is not None and receipt.remote_id else {}
    return named | _raised(answered) or None


def _raised(answered: Answered) -> dict[str, str]:
    return answered.raised.detail if answered.raised is not None else {}
