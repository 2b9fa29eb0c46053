"""One operation as a person or a program is shown it: where it stands, what it waits for, where its records are, its log.

It decides nothing: sentences are made from what the ledger says. It must never show a payload, an entity or a record's key.
"""

from dataclasses import asdict, dataclass
from typing import Any

from rich.console import Console
from rich.table import Table

from counterfoil.cli.answer import ago, moment
from counterfoil.cli.operation_ahead import SENTENCES
from counterfoil.cli.operation_cause import cause_data, cause_words, raised_words
from counterfoil.cli.operation_log import Entry, topic_of_row
from counterfoil.cli.operation_place import before_words, behind_words
from counterfoil.cli.shown import cell
from counterfoil.core.decisions import Ahead
from counterfoil.core.identity import idempotency_key
from counterfoil.core.reasons import reason_advice, reason_sentence
from counterfoil.core.roads import KINDS, TO_WORKERS
from counterfoil.core.states import EXCEPTIONS, State
from counterfoil.ledger.ordering import Place
from counterfoil.ledger.reading import History, Whole


@dataclass(frozen=True, slots=True)
class View:
    """Everything that `operations show` tells."""

    ledger: str
    operation: Whole
    history: History
    log: list[Entry]
    ahead: Ahead | None = None  #: of one that awaits confirmation; None: not known here
    place: Place | None = None  #: in its entity; None: it has no order, or is over


def waiting(view: View, *, utc: bool = True) -> str:
    """What the operation waits for, in one sentence."""
    one, state = view.operation, State(view.operation.state)
    if one.closed_at is not None:
        return "nothing: it is final"
    if state in EXCEPTIONS:
        return "a person: it is on the exceptions list"
    match state:
        case State.QUEUED | State.RETRY_WAIT:
            if one.not_before is not None and one.not_before > one.now:
                return "its due time; then its command record is sent"
            if (turn := before_words(view.place, one.state)) is not None:
                return turn
            if held := [row for row in view.history.raw if row.status == "held"]:
                until = moment(min(row.due_at for row in held), utc=utc)
                return f"a worker that can do its record, which is held ({held[0].reason}) until {until}"
            if any(row.kind in TO_WORKERS for row in view.history.unpublished):
                return "the relay, to publish its command record"
            return "a worker, to take its command record"
        case State.RUNNING:
            return "the outcome of the attempt that is running"
        case State.AWAITING_CONFIRMATION:
            return SENTENCES[view.ahead].format(due=moment(one.due_at, utc=utc))
        case State.SUCCEEDED:
            return "its confirmation at the sink"
    return "the operation that undoes it"


def as_data(view: View) -> dict[str, Any]:
    """The object of --json."""
    one, history = view.operation, view.history
    whole = asdict(one)
    tried = {"attempt": one.attempt, "of": one.attempt + one.tries_left, "tries_left": one.tries_left}
    topics = {kind: topic_of_row(view.ledger, one.type, kind) for kind in KINDS}
    return {
        "operation_id": one.operation_id,
        "ledger": view.ledger,
        "type": one.type,
        "state": one.state,
        "final": one.closed_at is not None,
        **tried,
        "cause": cause_data(one, history),
        "waiting": waiting(view),
        "entity": None if view.place is None else view.place._asdict(),
        "idempotency_key": idempotency_key(one.operation_id, one.revision, one.generation),
        **{name: value for name, value in whole.items() if name not in {"reason", "attempt", "tries_left", "now"}},
        "read_at": one.now,
        "published": [asdict(row) | {"topic": topics[row.kind]} for row in history.published],
        "unpublished": [asdict(row) | {"topic": topics[row.kind]} for row in history.unpublished],
        "unsendable": [asdict(row) for row in history.unsendable],
        "raw_records": [asdict(row) for row in history.raw],
        "log": [asdict(entry) for entry in view.log],
    }


def _facts(view: View, utc: bool) -> list[tuple[str, str]]:
    one = view.operation

    def at(moment_: Any) -> str:
        return moment(moment_, utc=utc)

    due = f"{at(one.due_at)} ({ago(one.now - one.due_at)})" if one.due_at else ""
    return [
        ("type", one.type),
        ("state", one.state + (" (final)" if one.closed_at else "")),
        ("attempt", f"{one.attempt} of {one.attempt + one.tries_left}"),
        ("cause", cause_words(one, view.history)),
        ("raised", raised_words(one, view.history)),
        ("what to do", reason_advice(one.reason)),
        ("waits for", waiting(view, utc=utc)),
        ("entity", behind_words(view.place)),
        ("due", due),
        ("not before", at(one.not_before)),
        ("doubtful since", at(one.doubtful_since)),
        ("cancel", "asked for; honoured at the next legal step" if one.cancel_asked and not one.closed_at else ""),
        ("version", one.version or ""),
        ("revision", str(one.revision)),
        ("idempotency key", idempotency_key(one.operation_id, one.revision, one.generation)),
        ("result key", one.result_key or ""),
        ("remote id", one.remote_id or ""),
        ("remote version", one.remote_version or ""),
        ("correlation", one.correlation_id or ""),
        ("trace", one.traceparent or ""),
        ("accepted", at(one.created_at)),
        ("changed", at(one.updated_at)),
        ("closed", at(one.closed_at)),
    ]


def _records(view: View, utc: bool) -> list[str]:
    one, history = view.operation, view.history
    topics = {kind: topic_of_row(view.ledger, one.type, kind) for kind in KINDS}
    lines = []
    for left in history.published:
        place = f"{topics[left.kind]} [{left.partition}] @ {left.record_offset}"
        lines.append(f"{left.kind} → {place}  {moment(left.at, utc=utc)}")
    for row in history.unpublished:
        lines.append(f"{row.kind} waits for the relay since {moment(row.created_at, utc=utc)}")
    for aside in history.unsendable:
        lines.append(f"{aside.kind} can never be sent: {reason_sentence(aside.reason)} ({aside.size} bytes)")
    for raw in history.raw:
        place = f"{raw.topic} [{raw.partition}] @ {raw.record_offset}"
        lines.append(f"{raw.status} record {place}: {reason_sentence(raw.reason)}; cause {raw.cause}")
    return lines


def _line(entry: Entry, utc: bool) -> tuple[str, str, str, str, str]:
    detail = " ".join(f"{name}={value}" for name, value in entry.detail.items() if value is not None)
    reason = entry.reason if entry.reason and entry.reason != entry.event else ""
    return moment(entry.at, utc=utc), entry.event, entry.state or "", str(entry.attempt or ""), f"{reason} {detail}".strip()


def as_words(view: View, *, utc: bool, console: Console) -> None:
    """The screen: facts, records, then the log in order."""
    console.print(cell(str(view.operation.operation_id), "bold"))
    facts = Table.grid(padding=(0, 2))
    for name, value in _facts(view, utc):
        if value:
            facts.add_row(cell(name, "dim"), cell(value))
    console.print(facts)
    console.print("\nrecords", style="bold")
    for line in _records(view, utc) or ["none"]:
        console.print(cell("  " + line))
    console.print("\nlog", style="bold")
    log = Table.grid(padding=(0, 2))
    for entry in view.log:
        log.add_row(*map(cell, _line(entry, utc)), style="dim" if entry.derived else "")
    console.print(log)
