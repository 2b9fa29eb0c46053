"""Further invariants, asserted from the outside: attempts against the sink's journal, events against the table of states.

Call them when nothing runs any more. Each function names what it asserts.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from confluent_kafka import Message
from sqlalchemy import Engine, Row, text

from counterfoil.core.reasons import Reason
from counterfoil.core.states import State
from counterfoil.core.transitions import exits
from counterfoil.ledger.dead_letters import cause_of
from counterfoil.sinks.journal import Entry
from tests.support.invariants import DONE, states

EVENTS = """SELECT o.operation_id, o.type, e.ordinal, e.sequence, e.at, e.kind, e.state, e.attempt, e.reason
    FROM counterfoil.event e JOIN counterfoil.operation o USING (number) ORDER BY e.number, e.ordinal"""
ANSWERS = {"result_saved", "retry_scheduled", "awaiting_confirmation", "quarantined"}


def _events(engine: Engine) -> Mapping[UUID, Sequence[Row[Any]]]:
    found: dict[UUID, list[Row[Any]]] = defaultdict(list)
    with engine.connect() as connection:
        for row in connection.execute(text(EVENTS)):
            found[row.operation_id].append(row)
    return found


def transitions_are_of_the_table(engine: Engine) -> None:
    """S3: every change of state is an edge of the table, and final states are left by none."""
    for operation, events in _events(engine).items():
        state: State | None = None
        sequence = -1
        for event in events:
            if event.sequence > sequence:
                assert State(event.state) in exits(state), f"{operation}: from {state or 'nothing'} to {event.state}"
                state, sequence = State(event.state), event.sequence
            else:
                assert event.state == state, f"{operation}: {event.kind} changed the state without its sequence"


def attempts_follow_each_other(engine: Engine, most: int) -> None:
    """S8, S9, S22: numbers rise by one, one attempt is open at a time, and only its latest moves an operation."""
    for operation, events in _events(engine).items():
        latest, sequence, running = 0, -1, False
        for event in events:
            moves = event.sequence > sequence
            sequence = event.sequence
            if event.kind == "admitted":
                assert not running, f"S8: {operation}: attempt {event.attempt} was admitted while one was open"
                assert event.attempt == latest + 1, f"S22: {operation}: attempt {event.attempt} after {latest}"
                latest, running = event.attempt, True
            elif moves:
                assert event.attempt == latest, (
                    f"S9: {operation}: {event.kind} of attempt {event.attempt}, the latest is {latest}"
                )
                running = False
        assert latest <= most, f"S22: {operation}: {latest} attempts"


def what_was_told_was_saved(engine: Engine, lines: Collection[Mapping[str, Any]]) -> None:
    """S9: an answer that a process has logged is an event of that very attempt."""
    there = {(str(operation), event.attempt, event.kind) for operation, events in _events(engine).items() for event in events}
    for line in lines:
        if line.get("event") in ANSWERS and "operation_id" in line:
            told = (str(line["operation_id"]), line["attempt"], line["event"])
            assert told in there, f"S9: a process says {told}, the ledger does not"


def requests_were_admitted(engine: Engine, entries: Collection[Entry]) -> None:
    """S8: no request reached a sink before the attempt that it belongs to was admitted and committed."""
    admitted = {
        str(operation): [event.at for event in events if event.kind == "admitted"]
        for operation, events in _events(engine).items()
    }
    seen: dict[str, int] = defaultdict(int)
    for entry in sorted(entries, key=lambda each: each.at):
        operation = entry.operation or ""
        seen[operation] += 1
        at = datetime.fromtimestamp(entry.at, UTC)
        before = sum(1 for each in admitted.get(operation, ()) if each <= at)
        assert seen[operation] <= before, f"S8: {operation}: request {seen[operation]} after {before} admitted attempts"


def versions_never_go_down(entries: Collection[Entry]) -> None:
    """S7: at the sink no version of an entity ever takes effect behind a later one."""
    newest: dict[str, int] = defaultdict(int)
    for entry in sorted(entries, key=lambda each: each.at):
        if entry.applied:
            version = entry.version or 0
            assert version >= newest[entry.entity], f"S7: version {version} of {entry.entity} after {newest[entry.entity]}"
            newest[entry.entity] = version


def effects_are_what_was_asked(engine: Engine, entries: Collection[Entry], wanted: Mapping[UUID, Mapping[str, Any]]) -> None:
    """S1, S2: whatever changed the sink has the operation's own fields; what ended without an effect has none there."""
    now = states(engine)
    for entry in entries:
        if entry.changed_content:
            operation = UUID(entry.operation or "")
            assert entry.fields == wanted[operation], f"S2: {operation}: other fields"
            assert now[operation] not in ("quarantined", "not_applicable"), f"S1: {operation} is {now[operation]}, with an effect"


def rows_beside_the_ledger_are_single(engine: Engine, type_name: str) -> None:
    """S1: an effect in the ledger exists exactly once where its operation is done, and nowhere else."""
    query = """SELECT o.operation_id, s.state, (SELECT count(*) FROM stock_log l WHERE l.operation = o.operation_id) AS rows
        FROM counterfoil.operation o JOIN counterfoil.state s USING (number) WHERE o.type = :type"""
    with engine.connect() as connection:
        for row in connection.execute(text(query), {"type": type_name}):
            assert row.rows == (row.state in DONE), f"S1: {row.operation_id} is {row.state}, with {row.rows} rows"


def every_cause_has_its_letter(engine: Engine, letters: Collection[Message], own: Collection[str]) -> None:
    """S12: a cause in the ledger and a dead letter, one for one, by cause id; reasons of the list or the types' `own`."""
    causes = {
        cause_of(operation, event.sequence): event.reason
        for operation, events in _events(engine).items()
        for event in events
        if event.kind == "quarantined"
    }
    with engine.connect() as connection:
        raws = connection.execute(text("SELECT id, reason FROM counterfoil.raw_record WHERE status = 'quarantined'"))
        causes |= {row.id: row.reason for row in raws}
    found = {}
    for letter in letters:
        headers: Any = dict(letter.headers() or ())
        if "cf_cause" in headers:  # the gate's write check has none
            found[UUID(headers["cf_cause"].decode())] = headers["cf_reason"].decode()
    assert found == causes, f"S12: {len(causes)} causes, {len(found)} dead letters"
    listed = {reason.value for reason in Reason}.union(own)
    assert set(found.values()) <= listed, f"S12: {set(found.values()) - listed} are no reasons"
