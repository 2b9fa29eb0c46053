"""Rows that can never be sent: moved aside with their reason, and a command's operation quarantined in the same transaction.

Whether the operation is quarantined or looked up first is core's decision. State records and dead letters have no such remedy:
they are kept in `refused`, and somebody is told.
"""

from collections.abc import Mapping, Sequence

from sqlalchemy import Connection, Engine

from counterfoil.core.decisions import set_aside
from counterfoil.core.events import LogEvent
from counterfoil.core.roads import TO_WORKERS
from counterfoil.core.standing import Rules
from counterfoil.failpoints import failpoint
from counterfoil.ledger.decided import Decided
from counterfoil.ledger.engine import in_transaction
from counterfoil.ledger.moves import Writer, Written, lock
from counterfoil.ledger.relaying import Aside, Moved, refuse
from counterfoil.streams.outcome_lines import tell_written
from counterfoil.telemetry import Fields, alarm, count


class Refusals:
    """Moves rows aside for one ledger. `rules` are those of the installed types."""

    def __init__(self, engine: Engine, writer: Writer, rules: Mapping[str, Rules]) -> None:
        self._engine, self._writer, self._rules = engine, writer, rules

    def move(self, session: int, rows: Sequence[Aside]) -> None:
        """Move them; those that another relay has taken over are left to it. Raises what the database says."""
        moved, written = in_transaction(self._engine, lambda connection: self._move(connection, session, rows))
        for one in moved:
            count("rows_refused", operation_type=one.type, reason=one.reason)
            fields = Fields(kind=one.kind, type=one.type, reason=one.reason, revision=one.revision)
            if one.number is not None:
                fields["number"] = one.number
            alarm(LogEvent.ROW_REFUSED, **fields)
        tell_written(written)

    def _move(self, connection: Connection, session: int, rows: Sequence[Aside]) -> tuple[list[Moved], list[Written]]:
        moved = refuse(connection, session, rows)
        commands = {one.number: one for one in moved if one.kind in TO_WORKERS and one.number is not None}
        locked = lock(connection, commands)
        decided = []
        for number, standing in locked.standings.items():
            one, rules = commands[number], self._rules.get(locked.facts[number].type)
            if standing.revision != one.revision:
                continue  # an old revision's row concerns nobody
            move = set_aside(rules, standing, one.reason)
            if move is not None:
                decided.append(Decided(standing, locked.facts[number], move))
        written = self._writer.write(connection, locked.now, decided)
        failpoint("relay.before_refuse_commit")
        return moved, written
