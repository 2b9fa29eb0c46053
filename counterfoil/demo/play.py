"""The play: callers enqueue, a relay and two workers work, one worker is killed half way, and all comes to rest.

It waits on what the ledger says, with a deadline, and never on time passing.
"""

import sys
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import orjson
from rich.console import Console
from sqlalchemy import Connection

from counterfoil.core.reasons import Reason
from counterfoil.core.states import State
from counterfoil.demo import screen
from counterfoil.demo.account import Account, Stands, account
from counterfoil.demo.declared import sync_customer
from counterfoil.demo.history import History, Outcome, call_all
from counterfoil.demo.processes import Died, Process
from counterfoil.demo.stage import EMBEDDED, Stage, stage
from counterfoil.demo.store import stored_entries
from counterfoil.ledger.reading import Wanted, page
from counterfoil.ledger.tallying import Tally, events_for, live_sessions, running_by_worker, tally
from counterfoil.sinks.journal import Fate

POLL = 0.05  # seconds between two looks at the ledger
START_WITHIN = 30.0  # seconds for relay and workers to be there
PAGE = 5_000
SETTLED = (State.SUCCEEDED, State.CONFIRMED, State.QUARANTINED, State.MANUAL_REVIEW, State.NOT_APPLICABLE)


@dataclass(frozen=True)
class Scene:
    """What was asked for."""

    operations: int
    database: str | None = None
    brokers: str | None = None
    as_json: bool = False
    seed: int = 7

    @property
    def rest_within(self) -> float:
        """Seconds in which everything must have come to rest."""
        return max(60.0, 20.0 + self.operations / 40)


class Overdue(RuntimeError):
    """A condition did not come true in time; the text names it."""


def play(scene: Scene) -> int:
    """Run it, tell the account, answer the exit code."""
    began = time.monotonic()
    try:
        with stage(scene.database, scene.brokers, scene.seed) as parts:
            ended, more = _perform(scene, parts)
            more["seconds"] = round(time.monotonic() - began, 1)
    except (Died, Overdue) as trouble:
        Console(stderr=True, highlight=False, soft_wrap=True).print(f"counterfoil demo: {trouble}")
        return 1
    if scene.as_json:
        sys.stdout.write(orjson.dumps(screen.as_data(ended, more), option=orjson.OPT_INDENT_2).decode() + "\n")
    else:
        screen.tell(ended, more)
    return 0 if ended.balanced and more["at_rest"] else 1


def _perform(scene: Scene, parts: Stage) -> tuple[Account, dict[str, Any]]:
    history = History()
    crew = [Process(name, command, parts.folder, parts.settings) for name, command in _CREW]
    try:
        with screen.progress(scene.operations) as bar, ThreadPoolExecutor(1) as pool:
            _until_there(parts, crew)
            calling = pool.submit(call_all, parts.engine, scene.operations, scene.seed, history)
            at_rest = _watch(scene, parts, crew, calling, bar)
        codes = {one.name: one.stop() for one in reversed(crew)}
    finally:
        for one in crew:
            one.stop()
    return _settle_up(parts, history, at_rest=at_rest, codes=codes)


_CREW = [("relay", ["relay"]), ("worker-1", ["worker"]), ("worker-2", ["worker"])]


def _until_there(parts: Stage, crew: list[Process]) -> None:
    deadline = time.monotonic() + START_WITHIN
    while True:
        for one in crew:
            one.must_run()
        with parts.engine.connect() as connection:
            if live_sessions(connection, "worker") == 2 and live_sessions(connection, "relay") == 1:
                return
        if time.monotonic() > deadline:
            raise Overdue(f"relay and workers were not there within {START_WITHIN:g} s: see the logs in {parts.folder}")
        _pause()


def _watch(scene: Scene, parts: Stage, crew: list[Process], calling: Future[None], bar: screen.Bar) -> bool:
    """Kill a worker half way, and wait until nothing moves any more; False where the deadline came first."""
    deadline = time.monotonic() + scene.rest_within
    victim: Process | None = None
    while time.monotonic() < deadline:
        for one in crew:
            one.must_run()
        if calling.done():
            calling.result()  # a caller that failed ends the demo
        with parts.engine.connect() as connection:
            now = tally(connection)
            settled = now.of(*SETTLED)
            if victim is None and settled >= scene.operations // 2:
                victim = _kill_a_busy_one(crew, connection)
        bar.shows("settled", settled, _note(now, killed=victim is not None))
        if calling.done() and _rests(now):
            if victim is not None:
                return True
            victim = crew[-1]  # no look found an attempt in flight: then it leaves none open
            victim.kill()
        _pause()
    return False


def _kill_a_busy_one(crew: list[Process], connection: Connection) -> Process | None:
    """SIGKILL to the worker with most attempts in flight; None while no worker has any, since none would be left open."""
    busy = {one: held for one in crew if (held := _held(one, connection))}
    for one in sorted(busy, key=lambda one: -busy[one]):
        one.pause()  # so that it still holds them when it dies,
        _pause()  # once the database has finished the commit that it may have been sending
        if _held(one, connection):
            one.kill()
            return one
        one.resume()
    return None


def _held(one: Process, connection: Connection) -> int:
    names = running_by_worker(connection).items()
    return sum(count for name, count in names if name.rpartition(":")[2] == str(one.pid))


def _rests(now: Tally) -> bool:
    """Nothing is queued, running, waiting for a retry, unpublished, or about to be sent again under its key."""
    resent = sum(
        count
        for counted, count in now.operations.items()
        if counted.state is State.AWAITING_CONFIRMATION and counted.type == sync_customer.name and counted.more
    )
    return not resent and not now.unpublished and not now.of(State.QUEUED, State.RUNNING, State.RETRY_WAIT)


def _note(now: Tally, *, killed: bool) -> str:
    told = [
        (now.of(State.QUEUED, State.RUNNING), "in work"),
        (now.of(State.RETRY_WAIT), "retry"),
        (now.of(State.AWAITING_CONFIRMATION), "uncertain"),
    ]
    words = [f"{count} {what}" for count, what in told if count]
    return ", ".join([*words, "one worker killed" if killed else "two workers"])


def _settle_up(parts: Stage, history: History, *, at_rest: bool, codes: dict[str, int]) -> tuple[Account, dict[str, Any]]:
    crm = parts.crm.entries()
    ended = account(
        history.ids(Outcome.COMMITTED),
        history.ids(Outcome.ROLLED_BACK),
        [*crm, *stored_entries(parts.store)],
        _standing(parts),
    )
    with parts.engine.connect() as connection:
        left_open = events_for(connection, Reason.LEASE_OVER)
    return ended, {
        "repeats_answered": sum(entry.fate is Fate.REPLAYED for entry in crm),
        "left_open": left_open,
        "brokers": EMBEDDED if parts.embedded else "real",
        "exit_codes": codes,
        "at_rest": at_rest,
    }


def _standing(parts: Stage) -> dict[str, Stands]:
    found: dict[str, Stands] = {}
    before: int | None = None
    while True:
        with parts.engine.connect() as connection:
            read = page(connection, Wanted(), limit=PAGE, before=before)
        for line in read.lines:
            operation: UUID = line.operation_id
            found[str(operation)] = Stands(State(line.state), line.due_at is not None, line.closed_at is not None)
        before = read.following
        if before is None:
            return found


def _pause() -> None:
    threading.Event().wait(POLL)
