"""Runs one cell: starts its processes, lets the fault strike where the armed one stands, mends, waits for rest, and judges."""

from __future__ import annotations

import signal
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any, NamedTuple

import orjson
from confluent_kafka import Producer
from sqlalchemy import text

from counterfoil import OperationType
from counterfoil.streams.worker.consumer import group_of
from tests.crash.bed import Bed, Restarts, Servers
from tests.crash.callers import TURNS, Caller, History, enqueue_one
from tests.crash.declared import OPERATIONS, keyed
from tests.crash.faults import Cell, Fault
from tests.crash.judge import Verdict, judge
from tests.support.processes import Started
from tests.support.waiting import eventually

REACH = 45.0  #: seconds in which the failpoint must be passed
REST = 90.0  #: seconds, after the mending, in which everything must have come to rest
FIRST = 10  #: number of a caller's first transaction
#: Longest command that the broker takes, where a row must be one that can never be sent.
SHORT_MESSAGES = 2_000
#: Failpoints that are passed only after another worker has died at its own.
BEFORE = {"due.before_leases_commit": "worker.after_admit", "worker.decoding_alone": "worker.decoding"}
#: Records that nobody can read go in after the armed worker alone is there.
ALONE = ("due.", "worker.before_keep", "worker.after_keep", "worker.decoding_alone")
#: What still moves by itself: anything but final, a person's turn, and what waits for a probe.
MOVING = """SELECT (SELECT count(*) FROM counterfoil.outbox)
    + (SELECT count(*) FROM counterfoil.state WHERE state IN ('queued', 'running', 'retry_wait'))
    + (SELECT count(*) FROM counterfoil.state s JOIN counterfoil.operation o USING (number)
        WHERE s.state = 'awaiting_confirmation' AND s.outcome = 'uncertain' AND o.type = 'keyed')"""
STANDS = """SELECT o.type, o.entity, s.state, s.attempt, s.reason, s.tries_left, s.due_at - counterfoil.ledger_time() AS due,
        (SELECT count(*) FROM counterfoil.outbox b WHERE b.number = s.number) AS in_outbox
    FROM counterfoil.state s JOIN counterfoil.operation o USING (number)
    WHERE s.state IN ('queued', 'running', 'retry_wait') OR (s.state = 'awaiting_confirmation' AND o.type = 'keyed')
        OR EXISTS (SELECT FROM counterfoil.outbox b WHERE b.number = s.number) ORDER BY s.number LIMIT 5"""
LEASE_OVER = """SELECT count(*) = 0 FROM counterfoil.worker
    WHERE name LIKE '%:' || :pid AND stopped_at IS NULL AND lease_until > counterfoil.ledger_time()"""
REFUSED = """SELECT count(*) FROM counterfoil.state s JOIN counterfoil.operation o USING (number)
    WHERE s.state = 'quarantined' AND o.type = 'keyed'"""
HELD = "SELECT count(*) FROM counterfoil.state s JOIN counterfoil.worker w ON w.id = s.session WHERE w.name LIKE '%:' || :pid"


class Plot(NamedTuple):
    """What is special about a run."""

    options: tuple[str, ...] = ()  #: of the processes' own entry: a guard that is taken out
    only: frozenset[str] = frozenset()  #: the types that are enqueued; empty: all


NO_PLOT = Plot()


@dataclass
class Result:
    """One cell's end. `trouble` None: it went as planned, and `verdict` says what the witnesses say."""

    cell: Cell
    hit: bool = False  #: the failpoint was passed by the armed process
    struck: bool = False  #: the fault was applied
    trouble: str | None = None
    verdict: Verdict = field(default_factory=Verdict)
    seconds: float = 0.0

    @property
    def good(self) -> bool:
        return self.hit and self.struck and self.trouble is None and not self.verdict.violations


class CellRun:
    """One cell on its own ledger."""

    def __init__(self, bed: Bed, cell: Cell, result: Result, restarts: Restarts | None = None, plot: Plot = NO_PLOT) -> None:
        self.bed, self.cell, self.result, self.restarts, self.plot = bed, cell, result, restarts, plot
        self.history = History(bed.line.folder / "history.jsonl")
        self.secret = bed.servers.planted.payload
        self.caller = Caller(bed.engine, bed.name, self.history, self.secret, plot.only)
        self.running: dict[str, list[Started]] = {"caller": [], "relay": [], "worker": [], "person": []}
        self.frozen = ""  #: the plan of dead letters that a person replays

    def run(self) -> None:
        """From the first process to the last."""
        armed = self.begin()
        self.strike_and_mend(armed)
        self.caller.call(FIRST + 50)
        self.rest()
        self.end(armed)
        self.result.verdict = judge(self.bed, self.history.wanted())

    # -- the steps

    def strike_and_mend(self, armed: Started) -> None:
        """The fault where the armed process stands; afterwards a relay and two workers are there."""
        self._strike(armed)
        self._mend(armed)

    def begin(self) -> Started:
        """Every process, the armed one first of its kind; answers it when it stands at its failpoint."""
        cell = self.cell
        if cell.part != "caller":
            self.caller.call(FIRST)
        if cell.place == "relay.before_refuse_commit":
            self._enqueue_what_cannot_be_sent()
        if (dies_at := BEFORE.get(cell.place)) is not None:
            self._leave_an_orphan(dies_at)
        if cell.part == "person":
            self._freeze_dead_letters()
        armed = self.start(cell.part, armed=True)
        for part, count in (("relay", 1), ("worker", 2)):
            missing = count - len(self.running[part])
            if not (part == cell.part == "worker" and cell.place.startswith(ALONE)):
                for _ in range(missing):
                    self.start(part)
        if cell.part == "relay":
            self.start("relay")
        self.send_garbage()
        armed.reached(cell.place, within=REACH)
        self.result.hit = True
        return armed

    def _strike(self, armed: Started) -> None:
        fault, standing = self.cell.fault, armed.failpoints / self.cell.place
        if fault is Fault.KILL:
            assert armed.wait() == -signal.SIGKILL
        elif fault is Fault.STOP:
            self._two_workers()
            self._past_its_lease(armed)
            armed.resume()
        elif fault is Fault.CUT:
            assert self.bed.proxy.connections, "the armed process has no connection to cut"
            self.bed.proxy.cut()
            standing.unlink()
        elif fault in (Fault.COMMIT_LOST, Fault.COMMIT_UNANSWERED):
            cut = self.bed.proxy.cut_at(b"COMMIT", delivered=fault is Fault.COMMIT_UNANSWERED)
            standing.unlink()
            eventually(cut.is_set, within=20, what="a COMMIT of the armed process")
        elif fault is Fault.BROKER:
            assert self.restarts is not None
            self.restarts.arrive()
            standing.unlink()
        self.result.struck = True

    def _past_its_lease(self, armed: Started) -> None:
        """Until no lease of it holds and, of a worker, nothing is in its name any more; a caller has none: as long."""
        pid = {"pid": str(armed.pid)}
        began = self.bed.one("SELECT counterfoil.ledger_time()")
        eventually(lambda: self.bed.one(LEASE_OVER, **pid), within=30, what="the end of its lease")
        long = "SELECT counterfoil.ledger_time() > :began + interval '3 seconds'"
        eventually(lambda: self.bed.one(long, began=began), within=30, what="three seconds")
        if self.cell.part == "worker" and not self.cell.place.endswith("_commit"):  # else it holds the rows' locks
            eventually(lambda: self.bed.one(HELD, **pid) == 0, within=30, what="the end of what it held")

    def _mend(self, armed: Started) -> None:
        """A process that the fault has ended is started again, and there are two workers."""
        if self.cell.part == "person":
            armed.wait(within=60)
            again = self.start("person")
            assert again.wait(within=60) == 0, f"the replay ended with {again.process.returncode}"
            return self._two_workers()
        if self.cell.fault in (Fault.KILL, Fault.RAISE) or not armed.running():
            if self.cell.fault is Fault.RAISE and self.cell.part != "worker":
                armed.wait()
            if not armed.running():
                self.running[self.cell.part].remove(armed)
                self.start(self.cell.part)
        self._two_workers()

    def _two_workers(self) -> None:
        while len(self.running["worker"]) < 2:
            self.start("worker")

    def rest(self) -> None:
        def at_rest() -> bool:
            for part, processes in self.running.items():
                for each in processes:
                    if not each.running() and part in ("relay", "worker"):
                        assert self.cell.fault is Fault.RAISE, f"{each.log.stem} ended by itself with {each.process.returncode}"
                        processes.remove(each)
                        self.start(part)
            return bool(self.bed.one(MOVING) == 0)

        try:
            eventually(lambda: all(not each.running() for each in self.running["caller"]), within=60, what="the callers' end")
            eventually(at_rest, within=REST, what="rest")
            eventually(self._all_passed, within=30, what="the commit of every offset")
        except AssertionError as late:
            with self.bed.engine.connect() as connection:
                stands = "\n".join(str(row) for row in connection.execute(text(STANDS)))
            raise AssertionError(f"{late}\n{stands}") from None

    def _all_passed(self) -> bool:
        topics, group = self.bed.topics, group_of(self.bed.name)
        for each in OPERATIONS.types:
            for road in ("commands", "retry"):
                topic = topics.name(each.name, road)
                committed = topics.committed(group, topic)
                if any(committed.get(n, 0) < end for n, end in topics.ends(topic).items()):
                    return False
        return True

    def end(self, armed: Started | None = None) -> None:
        """Every process is told to stop, and does."""
        for part in ("worker", "relay"):
            for each in self.running[part]:
                each.printed('"started"')
                code = each.terminate()
                assert code == 0 or (each is armed and self.cell.fault is Fault.RAISE), f"{each.log.stem} ended with {code}"

    # -- processes and what they are given

    def start(self, part: str, *, armed: bool = False, plan: str = "", plain: bool = False) -> Started:
        """One more process of its kind; `plan` is what its failpoints do, by default the cell's own where it is `armed`."""
        bed, cell = self.bed, self.cell
        plan = plan or (f"{cell.place}={cell.fault.action}" if armed else "")
        url = {"database": bed.armed_url} if armed else {}
        arguments = [*(() if plain else self.plot.options), part, "--json"]
        if part == "person":
            arguments = ["dlq", "replay", self.frozen, "--reason", "again", "--no-canary", "--json"]
        if part == "caller":
            arguments = ["caller", str(self.history.path), str(FIRST), self.secret]
        started = bed.line.start(*arguments, failpoints=plan, environment=self._where(), **url)
        self.running[part].append(started)
        if part == "relay":
            started.printed('"lease_taken"', within=REACH)
        return started

    def _where(self) -> Mapping[str, str]:
        return self.bed.servers.where

    def _freeze_dead_letters(self) -> None:
        """What was refused for good, all of one type, is to be sent again: a plan of it."""
        for part in ("relay", "worker", "worker"):
            self.start(part)
        eventually(lambda: self.bed.one(REFUSED) == TURNS, within=REST, what="what is refused for good")
        arguments = ("dlq", "plan", "--type", keyed.name, "--consumer", "another", "--reason", "again", "--json")
        self.frozen = str(orjson.loads(self.bed.line.run(*arguments).stdout)["id"])

    def _leave_an_orphan(self, dies_at: str) -> None:
        """What a worker leaves that is killed there, for another one to find."""
        self.start("relay")
        orphaned = self.bed.line.start("worker", "--json", failpoints=f"{dies_at}=kill", environment=self._where())
        assert orphaned.wait(REACH) == -signal.SIGKILL

    def _enqueue_what_cannot_be_sent(self) -> None:
        with self.bed.engine.begin() as connection:
            email = self.secret + Random(1).randbytes(2 * SHORT_MESSAGES).hex()  # it cannot be compressed below that
            operation = enqueue_one(connection, self.bed.name, keyed, "big", email)
        asked = [(operation, keyed.name, {"email": email})]
        self.history.note("ok", asked)

    def send_garbage(self, *types: OperationType[Any]) -> None:
        """Records that nobody can read, one in each partition of these types (none named: all): each must be kept."""
        producer = Producer({"bootstrap.servers": self.bed.topics.bootstrap})
        for each in types or OPERATIONS.types:
            for partition in range(self.bed.topics.partitions):
                producer.produce(self.bed.topics.name(each.name, "commands"), b"garbage", b"nobody", partition=partition)
        assert producer.flush(60) == 0


def run_cell(servers: Servers, cell: Cell, restarts: Restarts | None = None) -> Result:
    """One cell from its beginning to its verdict; never raises."""
    result = Result(cell)
    options: dict[str, Any] = {"message_bytes": SHORT_MESSAGES} if cell.place == "relay.before_refuse_commit" else {}
    began = time.monotonic()
    try:
        with servers.bed(**options) as bed:
            CellRun(bed, cell, result, restarts).run()
    except Exception as error:  # noqa: BLE001 - one cell never ends the others
        result.trouble = f"{type(error).__name__}: {error}"
    finally:
        if restarts is not None and not result.struck:
            restarts.leave()
    result.seconds = time.monotonic() - began
    return result
