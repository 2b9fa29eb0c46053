"""One held record as a person or a program is shown it: why and since when, until when, who could do it, payload masked."""

from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from rich.console import Console
from rich.table import Table
from sqlalchemy import Connection

from counterfoil.cli import record_view
from counterfoil.cli.answer import ago, moment
from counterfoil.cli.dead_letter_view import told_act
from counterfoil.cli.shown import cell
from counterfoil.core.operation_type import Operations
from counterfoil.core.reasons import Reason, reason_advice, reason_sentence
from counterfoil.core.roles import READS, role_name
from counterfoil.settings import Settings


@dataclass
class View:
    """Everything that `held show` tells."""

    line: Any
    now: datetime
    allowed: list[dict[str, Any]]
    capable: bool | None = None  #: whether a live worker says that it can do it; None: the login may not see its bytes
    payload: Any = None
    payload_withheld: str | None = None
    record: dict[str, Any] | None = None
    raw: dict[str, Any] | None = None


def looked_at(connection: Connection, settings: Settings, operations: Operations, name: UUID) -> View:
    """Reads one held record. Raises Refused for an unknown one."""
    from counterfoil.ledger import held
    from counterfoil.ledger.names import ledger_of
    from counterfoil.ledger.reading import ledger_now
    from counterfoil.ledger.roles import role_of

    line = held.one(connection, name)
    refused = Reason.NOT_HELD if line.status != "held" else Reason.UNKNOWN_OPERATION_RECORD if line.number is None else None
    view = View(line, ledger_now(connection), [told_act("release", refused)])
    ledger, needed = ledger_of(connection).name, READS["payload, masked"]
    role = role_of(connection, ledger)
    if role is None or not role.covers(needed):
        view.payload_withheld = f"needs the role {role_name(ledger, needed)}"
        return view
    view.capable = held.is_capable(connection, line.cause)
    view.record, value = record_view.looked_at(connection, line.cause)
    view.payload, view.payload_withheld = record_view.masked(settings, operations, line.type, value)
    return view


def as_data(view: View) -> dict[str, Any]:
    """The object of --json."""
    line = view.line
    why = {"reason": line.reason, "sentence": reason_sentence(line.reason), "advice": reason_advice(line.reason)}
    told = asdict(line) | {"why": why, "age_seconds": (view.now - line.at).total_seconds(), "capable": view.capable}
    told |= {"allowed": view.allowed, "payload": view.payload, "payload_withheld": view.payload_withheld, "record": view.record}
    return told if view.raw is None else told | {"raw_bytes": view.raw}


def as_words(view: View, *, utc: bool, console: Console) -> None:
    """The screen."""
    line = view.line
    console.print(cell(str(line.cause), "bold"))
    facts = Table.grid(padding=(0, 2))
    named = str(line.operation_id) if line.operation_id else "none: the ledger has none for it, and it stays held"
    for name, value in (
        ("type", line.type),
        ("status", line.status),
        ("why", f"{line.reason}: {reason_sentence(line.reason)}"),
        ("what to do", reason_advice(line.reason)),
        ("operation", named),
        ("held", f"{moment(line.at, utc=utc)} ({ago(view.now - line.at)} ago)"),
        ("deadline", f"{moment(line.due_at, utc=utc)}; then its operation is quarantined" if line.operation_id else ""),
        ("worker", _worker(view.capable)),
    ):
        if value:
            facts.add_row(cell(name, "dim"), cell(value))
    console.print(facts)
    record_view.print_acts(view.allowed, console)
    record_view.print_payload(view.payload, view.payload_withheld, view.record, console)
    record_view.print_raw(view.raw, console)


def _worker(capable: bool | None) -> str:
    if capable is None:
        return ""
    return "a live worker can do it" if capable else "no live worker can do it: let go now, it would be held again"
