"""Records that a worker cannot read, held against the ledger's own bytes: is it the operation that cannot be run, or a record
that somebody else wrote?

Only a record that carries the ledger's current bytes says anything about its operation; any other is kept raw and changes
nothing.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from sqlalchemy import Connection, select

from counterfoil.core import decisions
from counterfoil.core.standing import Rules
from counterfoil.ledger.decided import Decided
from counterfoil.ledger.moves import Writer, Written, lock
from counterfoil.ledger.tables import operation, payload, state


class Suspect(NamedTuple):
    """A record that cannot be read, and the operation that its headers claim."""

    number: int
    value_hash: bytes  #: sha256 of the record's bytes


def own_bytes(connection: Connection, rules: Rules, suspects: Sequence[Suspect]) -> set[int]:
    """The numbers of those whose bytes are the ledger's current ones, of this type."""
    by_number = {suspect.number: suspect.value_hash for suspect in suspects}
    rows = connection.execute(
        select(state.c.number, payload.c.value_hash)
        .join(operation, operation.c.number == state.c.number)
        .join(payload, (payload.c.number == state.c.number) & (payload.c.revision == state.c.revision))
        .where(state.c.number.in_(list(by_number)), operation.c.type == rules.name)
    )
    return {row.number for row in rows if bytes(row.value_hash) == by_number[row.number]}


def set_aside(connection: Connection, writer: Writer, rules: Rules, reasons: Mapping[int, str]) -> list[Written]:
    """Quarantine waiting operations that no worker can decode, with their dead letter; others are left as they are."""
    locked = lock(connection, reasons)
    decided = []
    for number, standing in locked.standings.items():
        move = decisions.set_aside(rules, standing, reasons[number])
        if move is not None:
            decided.append(Decided(standing, locked.facts[number], move))
    return writer.write(connection, locked.now, decided)
