"""What people say of types and sinks: paused for a while, resumed, held to other limits than declared. Each is an act.

A pause ends by itself, by the ledger's clock. Workers read it within a second or two; nothing here waits for them.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Literal, NamedTuple

from sqlalchemy import Connection

from counterfoil.core.acts import Action
from counterfoil.core.errors import Refused
from counterfoil.core.reasons import Reason
from counterfoil.ledger import acts
from counterfoil.ledger.names import Ledger
from counterfoil.ledger.statements import limiting as statements

Kind = Literal["type", "sink"]


class Pause(NamedTuple):
    """A pause that holds now."""

    kind: Kind
    name: str
    reason: str
    actor: str  #: the database login
    at: datetime
    until: datetime | None  #: None: until somebody resumes it
    act: int


def paused(connection: Connection) -> frozenset[tuple[str, str]]:
    """What holds now, as ("type" or "sink", name)."""
    return frozenset((row.kind, row.name) for row in connection.execute(statements.lasting()))


def pauses(connection: Connection) -> list[Pause]:
    """What holds now, with who paused it and why."""
    return [Pause(**row) for row in connection.execute(statements.lasting()).mappings()]


def pause(connection: Connection, ledger: Ledger, kind: Kind, name: str, reason: str, lasting: timedelta | None = None) -> Pause:
    """Pauses a type or a sink; one that is paused already is paused anew, with this reason and end. Raises Refused."""
    seconds = None if lasting is None else lasting.total_seconds()
    key = {"kind": kind, "name": name}
    before = connection.execute(statements.LOCK_PAUSE, key).one_or_none()
    act = acts.record(
        connection,
        ledger,
        Action.PAUSE,
        f"{kind} {name}",
        reason,
        "paused" if before is None or before.over else "paused anew",
        detail={"seconds": seconds} if seconds is not None else None,
    )
    row = connection.execute(statements.PAUSE, {**key, "reason": reason, "seconds": seconds, "act": act}).mappings().one()
    return Pause(**row)


def resume(connection: Connection, ledger: Ledger, kind: Kind, name: str, reason: str) -> int:
    """Ends a pause; answers the act's id. Raises Refused where nothing is paused."""
    before = connection.execute(statements.LOCK_PAUSE, {"kind": kind, "name": name}).one_or_none()
    if before is None or before.over:
        raise Refused(Reason.NOT_PAUSED, subject=f"{kind} {name}")
    act = acts.record(connection, ledger, Action.RESUME, f"{kind} {name}", reason, "resumed", detail={"paused_by": before.act})
    connection.execute(statements.RESUME, {"kind": kind, "name": name})
    return act


class Chosen(NamedTuple):
    """Limits that a person has set. `concurrency` None: as declared, both of them."""

    concurrency: int | None
    per_second: float | None


def set_limits(connection: Connection, ledger: Ledger, name: str, chosen: Chosen, reason: str) -> int:
    """Sets a sink's limits in place of the declared ones, for all workers, from their next look; answers the act's id."""
    connection.execute(statements.ENSURE_ONE, {"name": name})
    before = connection.execute(statements.LOCK_LIMITS, {"name": name}).one()
    detail: Mapping[str, Any] = {
        "before": {"concurrency": before.concurrency, "per_second": before.per_second},
        "after": chosen._asdict(),
    }
    result = "as declared" if chosen.concurrency is None else "set"
    act = acts.record(connection, ledger, Action.LIMIT, f"sink {name}", reason, result, detail=detail)
    connection.execute(statements.SET_LIMITS, {"name": name, **chosen._asdict()})
    return act
