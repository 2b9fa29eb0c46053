"""Asks a type's `still_wanted` about the operations of a batch, before any of them is admitted.

Only a record with the ledger's own bytes is asked about: a forged one cancels nothing. The function gets a read-only connection,
and what it raises never travels: that operation is set aside with a reason, and nothing was sent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, text

from counterfoil.core import decisions
from counterfoil.core.decisions import Ask, Move
from counterfoil.core.reasons import Reason
from counterfoil.core.standing import Rules
from counterfoil.core.wanted import Wanted
from counterfoil.ledger import poison
from counterfoil.ledger.away import READ_ONLY, is_away
from counterfoil.ledger.decided import Decided
from counterfoil.ledger.engine import AGAIN
from counterfoil.ledger.moves import Noted, Writer, Written, lock
from counterfoil.streams.ledger_calls import LedgerCalls
from counterfoil.streams.worker.record import Readable

StillWanted = Callable[[Any, Connection], Wanted]

_READ_ONLY = text("SET TRANSACTION READ ONLY")


class Wanting:
    """The question of one type, for batches of readable records. Blocks its thread."""

    def __init__(self, calls: LedgerCalls, writer: Writer, rules: Rules, still_wanted: StillWanted) -> None:
        self._calls = calls
        self._writer = writer
        self._rules = rules
        self._still_wanted = still_wanted

    def __call__(self, first: Mapping[int, Readable]) -> list[tuple[int, Written]]:
        """What was closed or set aside, by number; all others may ask to be admitted."""
        answers = self._answers(list(first.values()))
        if not answers:
            return []
        return self._calls.run(lambda connection: self._act(connection, answers))

    def _answers(self, asked: Sequence[Readable]) -> dict[int, Wanted | None]:
        """The operations that are not plainly wanted; None: the function failed. Each failure costs a transaction of its own."""
        answers: dict[int, Wanted | None] = {}
        done = 0
        while done < len(asked):
            rest = asked[done:]
            done += self._calls.run(lambda connection, rest=rest: self._ask(connection, rest, answers))  # type: ignore[misc]
        return answers

    def _ask(self, connection: Connection, asked: Sequence[Readable], answers: dict[int, Wanted | None]) -> int:
        """How many were asked, up to and with the first failure: it may have broken the transaction."""
        suspects = [poison.Suspect(one.candidate.number, one.candidate.value_hash) for one in asked]
        own = poison.own_bytes(connection, self._rules, suspects)
        connection.execute(_READ_ONLY)
        for place, one in enumerate(asked):
            number = one.candidate.number
            if number not in own:
                continue
            answer = self._one(connection, one.payload)
            if answer is not Wanted.YES:
                answers[number] = answer
            if answer is None:
                connection.rollback()
                return place + 1
        return len(asked)

    def _one(self, connection: Connection, payload: Any) -> Wanted | None:
        try:
            answer: object = self._still_wanted(payload, connection)
        except Exception as error:  # a user's function: whatever it is, nothing was sent; its text goes nowhere
            state = getattr(getattr(error, "orig", None), "sqlstate", None)
            if state in AGAIN or (state != READ_ONLY and is_away(error)):  # read-only is our own word here, not a standby's
                raise
            return None
        return answer if isinstance(answer, Wanted) and connection.in_transaction() else None

    def _act(self, connection: Connection, answers: Mapping[int, Wanted | None]) -> list[tuple[int, Written]]:
        locked = lock(connection, answers)
        decided: list[Decided] = []
        notes: list[Noted] = []
        for number, standing in locked.standings.items():
            answer = answers[number]
            if answer is None:
                move: Move | Ask | None = decisions.set_aside(self._rules, standing, Reason.STILL_WANTED_FAILED.value)
            else:
                move = decisions.no_longer_wanted(standing, answer)
            if isinstance(move, Move):
                decided.append(Decided(standing, locked.facts[number], move))
            elif isinstance(move, Ask):
                notes.append(Noted(number, move.kind, move.reason, standing.attempt, due_now=move.due_now))
        self._writer.tell(connection, notes)
        written = {one.operation_id: one for one in self._writer.write(connection, locked.now, decided)}
        return [
            (each.standing.number, written[each.facts.operation_id]) for each in decided if each.facts.operation_id in written
        ]
