"""One scene for each guard: a run in which its absence must show. The checker knows nothing of the guard that is missing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from uuid import UUID

from confluent_kafka import Producer
from sqlalchemy import text

from counterfoil.core.identity import idempotency_key
from counterfoil.schemas.contract import contract_of
from counterfoil.schemas.envelope import Command, command_headers, source
from counterfoil.streams.worker.consumer import group_of
from examples.sync_customer import Customer
from tests.crash.bed import Servers
from tests.crash.callers import enqueue_one
from tests.crash.declared import keyed, ordered, stock
from tests.crash.faults import Cell, Fault
from tests.crash.judge import Verdict, judge
from tests.crash.run import FIRST, CellRun, Plot, Result
from tests.support.waiting import eventually

CLOSED = "SELECT count(*) FROM counterfoil.state WHERE closed_at IS NOT NULL"
STATE_ROWS = "SELECT count(*) FROM counterfoil.outbox WHERE kind = 'state'"
OPERATIONS_OF = (
    """SELECT o.number, o.operation_id, o.entity FROM counterfoil.operation o WHERE o.type = :type ORDER BY o.number"""
)
Scene = Callable[[CellRun], None]


@dataclass(frozen=True)
class Guard:
    """A guard, and where its absence must show."""

    name: str
    sentence: str
    cell: Cell
    only: frozenset[str]
    scene: Scene
    options: tuple[str, ...] = ()
    partitions: int = 4


def _as_a_cell(run: CellRun) -> None:
    run.strike_and_mend(run.begin())


def _forged(run: CellRun) -> None:
    """Before the relay has sent anything, somebody puts records of the same operations with other bytes on the topic."""
    run.caller.call(FIRST)
    run.start("worker").printed('"started"')
    with run.bed.engine.connect() as connection:
        rows = connection.execute(text(OPERATIONS_OF), {"type": keyed.name}).all()
    producer = Producer({"bootstrap.servers": run.bed.topics.bootstrap})
    for row in rows:
        value = contract_of(keyed).encode(Customer(row.entity, 1, "forged@example.com"))
        key = idempotency_key(row.operation_id, 1, 0)
        headers = command_headers(source(run.bed.name), Command(row.number, row.operation_id, keyed.name, 1, key, 1))
        producer.produce(run.bed.topics.name(keyed.name, "commands"), value, row.entity.encode(), headers=[*headers])
    assert producer.flush(30) == 0
    bound = "SELECT count(*) FROM counterfoil.state WHERE state <> 'queued'"
    kept = "SELECT count(*) FROM counterfoil.raw_record"
    eventually(lambda: run.bed.one(bound) + run.bed.one(kept) >= len(rows), within=45, what="the forged records")
    run.start("relay")


def _next_one_meanwhile(run: CellRun) -> None:
    """An answer is written and not committed while the record of the entity's next operation comes."""
    run.start("relay")
    worker = run.start("worker", plan=f"{run.cell.place}=hold")
    _in_line(run, 1)
    worker.reached(run.cell.place, within=45)
    following = _in_line(run, 2)
    waits = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    met = f'"received","operation_id":"{following}"'
    eventually(lambda: run.bed.one(waits) or met in worker.output, within=45, what="the next one's turn")
    (worker.failpoints / run.cell.place).unlink()


def _in_line(run: CellRun, version: int) -> UUID:
    with run.bed.engine.begin() as connection:
        email = f"{run.secret}-{version}@example.com"
        operation = enqueue_one(connection, run.bed.name, ordered, "plain", email, version)
    run.history.note("ok", [(operation, ordered.name, {"email": email})])
    return operation


def _late_receipt(run: CellRun) -> None:
    """The relay dies after the command; several state rows of one operation wait, and the first one's report is lost."""
    relay = run.start("relay", plain=True)
    with run.bed.engine.begin() as connection:
        email = f"{run.secret}@example.com"
        operation = enqueue_one(connection, run.bed.name, keyed, "late", email)
    run.history.note("ok", [(operation, keyed.name, {"email": email})])
    run.start("worker", plain=True)
    running = "SELECT count(*) FROM counterfoil.state WHERE state = 'running'"
    eventually(lambda: run.bed.one(running), within=45, what="the attempt")
    relay.kill()
    run.running["relay"].remove(relay)
    eventually(lambda: run.bed.one(CLOSED), within=45, what="the late receipt")
    assert run.bed.one(STATE_ROWS) >= 2
    run.start("relay")


def _garbage_in_work(run: CellRun) -> None:
    """A record that nobody can read is being kept when the worker dies; records behind it were settled before."""
    run.send_garbage(stock)
    worker = run.start("worker", plan="worker.before_keep=hold")
    worker.reached("worker.before_keep", within=45)
    run.caller.call(FIRST)
    run.start("relay")
    eventually(lambda: run.bed.one(CLOSED) >= 8, within=45, what="the records behind it")
    topic = run.bed.topics.name(stock.name, "commands")
    eventually(lambda: run.bed.topics.committed(group_of(run.bed.name), topic).get(0, 0) > 1, within=20, what="their commit")
    worker.kill()
    run.running["worker"].remove(worker)
    run.start("worker")


ONLY_STOCK, ONLY_ONCE, ONLY_KEYED = frozenset({"stock"}), frozenset({"once"}), frozenset({"keyed"})
ONLY_ORDERED = frozenset({"ordered"})
GUARDS = (
    Guard(
        "fence",
        "only the ordered attempt's answer changes a state",
        Cell("worker.after_admit", Fault.STOP),
        ONLY_STOCK,
        _as_a_cell,
    ),
    Guard(
        "admitted-before-call",
        "the admitted event is committed before the effect is called",
        Cell("worker.after_effect", Fault.KILL),
        ONLY_ONCE,
        _as_a_cell,
    ),
    Guard(
        "prefix-commit",
        "a commit never passes a record that is not finished",
        Cell("worker.before_keep", Fault.KILL),
        ONLY_STOCK,
        _garbage_in_work,
        partitions=1,
    ),
    Guard(
        "revision-match",
        "only the ledger's own revision and bytes are run",
        Cell("worker.before_admit", Fault.KILL),
        ONLY_KEYED,
        _forged,
    ),
    Guard(
        "entity-lock",
        "an entity's operations are admitted and settled one after the other",
        Cell("worker.before_settle_commit", Fault.STOP),
        ONLY_ORDERED,
        _next_one_meanwhile,
    ),
    Guard(
        "state-acknowledgement",
        "on the compacted topic a row counts only when no earlier one of its key is unknown",
        Cell("relay.after_produce", Fault.KILL),
        ONLY_KEYED,
        _late_receipt,
        options=("--lose", "first-state-report"),
        partitions=1,
    ),
)


@dataclass
class Caught:
    """What the checker said of the code without one guard."""

    guard: Guard
    verdict: Verdict
    trouble: str | None = None

    @property
    def caught(self) -> bool:
        return bool(self.verdict.violations)


def run_guard(servers: Servers, guard: Guard, *, removed: bool = True) -> Caught:
    """Its scene without the guard, or, for comparison, with it."""
    out = ("--without", guard.name) if removed else ()
    result = Result(guard.cell)
    found = Caught(guard, result.verdict)
    try:
        with servers.bed(partitions=guard.partitions) as bed:
            run = CellRun(bed, guard.cell, result, plot=Plot((*out, *guard.options), guard.only))
            try:
                guard.scene(run)
                run.rest()
                run.end()
            except Exception as error:  # noqa: BLE001 - without its guard the product may do anything; the witnesses tell
                found.trouble = f"{type(error).__name__}: {error}"
            bed.line.end_all()
            found.verdict = judge(bed, run.history.wanted())
    except Exception as error:  # noqa: BLE001
        found.trouble = f"{type(error).__name__}: {error}"
    return found
