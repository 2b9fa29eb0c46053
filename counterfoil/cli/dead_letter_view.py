"""One dead letter as a person or a program is shown it: cause, what may be done, payload masked, revisions, plans, acts.

It decides nothing: what is allowed is core's answer. A payload is shown through the mask only, and not to a reader.
"""

from dataclasses import asdict, dataclass, field
from typing import Any
from uuid import UUID

from rich.console import Console
from rich.table import Table
from sqlalchemy import Connection

from counterfoil.cli import record_view
from counterfoil.cli.answer import moment
from counterfoil.cli.shown import cell
from counterfoil.core.acts import Action
from counterfoil.core.operation_type import Operations
from counterfoil.core.reasons import Reason, reason_advice, reason_sentence
from counterfoil.core.roles import READS, role_name
from counterfoil.settings import Settings


@dataclass
class View:
    """Everything that `dlq show` tells."""

    line: Any
    state: str | None
    allowed: list[dict[str, Any]]
    risk: str | None
    payload: Any = None
    payload_withheld: str | None = None
    revisions: list[dict[str, Any]] = field(default_factory=list)
    plans: list[dict[str, Any]] = field(default_factory=list)
    acts: list[dict[str, Any]] = field(default_factory=list)
    record: dict[str, Any] | None = None
    raw: dict[str, Any] | None = None


def looked_at(connection: Connection, settings: Settings, operations: Operations, name: UUID) -> View:
    """Reads one dead letter. Raises Refused for an unknown one."""
    from counterfoil.ledger import acts, plans, quarantine
    from counterfoil.ledger.names import ledger_of
    from counterfoil.ledger.roles import role_of
    from counterfoil.streams.dead_letters.judging import Judge

    ledger = ledger_of(connection).name
    line = quarantine.one(connection, name)
    role = role_of(connection, ledger)
    judge = Judge(ledger, settings, operations)
    sees_bytes = role is not None and role.covers(READS["payload, masked"])
    view = View(line, None, [], judge.doubling(line.type))
    if line.number is not None:
        there = plans.look(connection, [line.number])
        view.state = there.standings[line.number].state.value
        view.plans = [one._asdict() for one in quarantine.plans_of(connection, line.number)]
        view.acts = [one._asdict() for one in acts.read(connection, number=line.number, limit=20)]
    if sees_bytes:
        view.allowed = _allowed(connection, judge, line)
        _payload(connection, settings, operations, view)
    else:
        view.payload_withheld = f"needs the role {role_name(ledger, READS['payload, masked'])}"
    return view


def _allowed(connection: Connection, judge: Any, line: Any) -> list[dict[str, Any]]:
    """Each act with whether it is allowed now; what is not, with its reason."""
    from counterfoil.core.decisions import Grounds, No, edit
    from counterfoil.ledger import plans
    from counterfoil.ledger.plans import Item

    item = Item(1, line.id, line.number, line.raw, line.sequence, line.revision, line.replays)
    found = []
    for act, grounds in (
        (Action.REPLAY, None),
        (Action.REPLAY, Grounds.CONSUMER),
        (Action.DISCARD, None),
        (Action.LOOK_FIRST, None),
    ):
        [one] = judge.judge(connection, act, _hypothetical(grounds), [item], held=False)[1]
        what = act.value if grounds is None else f"{act.value} --consumer NAME"
        found.append(told_act(what, one.refused))
    rules = judge.rules(line.type)
    if line.number is not None and rules is not None:
        there = plans.look(connection, [line.number])
        standing = there.standings[line.number]
        refused = edit(rules, standing, seen_revision=standing.revision, now=there.now)
        found.insert(2, told_act("fix", refused.reason if isinstance(refused, No) else None))
    return found


def _hypothetical(grounds: Any) -> Any:
    from datetime import UTC, datetime

    from counterfoil.ledger.plans import Plan

    at = datetime.now(UTC)
    told = None if grounds is None else grounds.value
    return Plan(0, at, "", "", {}, at, told, None, "frozen", 1, None, None, None)


def told_act(what: str, refused: Reason | None) -> dict[str, Any]:
    """One act, and why it is not allowed now."""
    if refused is None:
        return {"act": what, "allowed": True}
    return {"act": what, "allowed": False, "reason": refused.value, "sentence": refused.sentence, "advice": refused.advice}


def _payload(connection: Connection, settings: Settings, operations: Operations, view: View) -> None:
    from counterfoil.ledger import quarantine
    from counterfoil.schemas.contracts import Contracts
    from counterfoil.streams.dead_letters.showing import changed

    line = view.line
    if line.number is None:
        view.record, value = record_view.looked_at(connection, line.raw)
    else:
        contracts, revisions = Contracts(operations, settings.registry_lock), quarantine.revisions(connection, line.number)
        value = revisions[-1].value
        for before, after in zip([None, *revisions], revisions, strict=False):
            told = {"revision": after.revision, "at": after.created_at, "bytes": len(after.value)}
            told["changed"] = [] if before is None else changed(contracts, line.type, before.value, after.value)
            view.revisions.append(told)
    view.payload, view.payload_withheld = record_view.masked(settings, operations, line.type, value)


def as_data(view: View) -> dict[str, Any]:
    """The object of --json."""
    line = view.line
    cause = {"reason": line.reason, "sentence": reason_sentence(line.reason), "advice": reason_advice(line.reason)}
    told = {"id": line.name, **asdict(line), "dead_letter": line.id, "cause": cause, "state": view.state, "risk": view.risk}
    told |= {"id": line.name, "allowed": view.allowed, "payload": view.payload, "payload_withheld": view.payload_withheld}
    told |= {"revisions": view.revisions, "plans": view.plans, "acts": view.acts, "record": view.record}
    return told if view.raw is None else told | {"raw_bytes": view.raw}


def as_words(view: View, *, utc: bool, console: Console) -> None:
    """The screen."""
    line = view.line
    console.print(cell(str(line.name), "bold"))
    facts = Table.grid(padding=(0, 2))
    rows = [
        ("type", line.type),
        ("state", view.state or "a record without an operation of its own"),
        ("cause", f"{line.reason}: {reason_sentence(line.reason)}"),
        ("what to do", reason_advice(line.reason)),
        ("fingerprint", line.fingerprint),
        ("quarantined", moment(line.at, utc=utc)),
        ("replays", f"{line.replays}, last {moment(line.replayed_at, utc=utc)}" if line.replays else ""),
        ("doubling", view.risk or "unknown: its type is not installed here"),
    ]
    for name, value in rows:
        if value:
            facts.add_row(cell(name, "dim"), cell(value))
    console.print(facts)
    record_view.print_acts(view.allowed, console)
    record_view.print_payload(view.payload, view.payload_withheld, view.record, console)
    for one in view.revisions[1:]:
        console.print(cell(f"revision {one['revision']}, {moment(one['at'], utc=utc)}", "bold"))
        for change in one["changed"]:
            console.print(cell(f"  {change['path']}: {change['before']} → {change['after']}"))
    for one in view.plans:
        console.print(cell(f"plan {one['plan']}: {one['status']} {one['reason'] or ''} {moment(one['at'], utc=utc)}"))
    for one in view.acts:
        console.print(cell(f"{moment(one['at'], utc=utc)} {one['actor']} {one['action']}: {one['result']} ({one['reason']})"))
    record_view.print_raw(view.raw, console)
