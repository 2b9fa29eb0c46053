"""`counterfoil worker`: takes command records, runs their effects, settles, commits.

Puts the parts together. Faust hosts the agents (one a type, fed over a channel), the timers, the signals and the order of start
and stop; librdkafka carries the records; a few threads call the ledger. No exception leaves an agent: whatever goes wrong with
the worker itself ends the process.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
import socket
import sys
import tempfile
from collections.abc import AsyncIterable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import faust
from faust.app.base import BootStrategy

from counterfoil.core.breaker import Habits
from counterfoil.core.effect import Effect
from counterfoil.core.events import LogEvent
from counterfoil.core.operation_type import Operations
from counterfoil.ledger.engine import ledger_engine
from counterfoil.ledger.names import Ledger, ledger_of
from counterfoil.reporting import writer_of
from counterfoil.settings import Settings, SettingsError, load_operations
from counterfoil.streams.ledger_calls import DatabaseGone, LedgerCalls
from counterfoil.streams.lifeline import UNREACHABLE, Watchdog
from counterfoil.streams.worker.acknowledging import Acknowledgements
from counterfoil.streams.worker.admitting import Admitting, Desk
from counterfoil.streams.worker.consuming import Hands, consuming
from counterfoil.streams.worker.decoding import Decoding
from counterfoil.streams.worker.gates import Gates
from counterfoil.streams.worker.in_hand import InHand
from counterfoil.streams.worker.in_ledger import InLedgerWork
from counterfoil.streams.worker.keeper import Keeper
from counterfoil.streams.worker.lane import InLedgerLane, Lane, Means, OutsideLane
from counterfoil.streams.worker.lease import Lease
from counterfoil.streams.worker.life import LEAVE_WITHIN, Ending, Life, Parts
from counterfoil.streams.worker.runnable import RunnableType, runnable_types, topics_of
from counterfoil.streams.worker.slots import Slots
from counterfoil.streams.worker.sweeper import Pace as SweeperPace
from counterfoil.streams.worker.sweeper import Sweeper
from counterfoil.streams.worker.threads import Threads
from counterfoil.streams.worker.watch import Patience, ProgressWatch
from counterfoil.telemetry import log

#: Connections that a worker uses at once: two for the road, two for effects in the ledger, one each for lease, limits, sweepers
#: and notes.
CONNECTIONS = 8
#: Threads that call the ledger on the road of operations: while one batch is in the database the next is decoded.
LEDGER_THREADS = 2
#: Threads that run effects in the ledger; where several types have such effects, no one type has all of them (L3).
IN_LEDGER_THREADS = 2
#: Batches that a channel holds before its agent has taken them; ingest pauses long before.
CHANNEL = 64
#: A batch makes tens of thousands of small values that live until it is settled.
SELDOM = (50_000, 20, 100)
LOOK_EVERY = 2.0  #: seconds
NOTE_EVERY = 0.25


def run(settings: Settings, operations: Operations | None = None) -> int:
    """Run until SIGTERM or SIGINT; answers the exit code: 0, 3 (database or broker lost) or 4 (a fault).

    Raises Refused and SettingsError before anything is started.
    """
    declared = operations if operations is not None else load_operations(settings.operations)
    types = _types(settings, declared)
    engine = ledger_engine(settings.database, pool_size=max(CONNECTIONS, settings.database_pool))
    calls = LedgerCalls(engine, settings.stop_after.total_seconds())
    ending = Ending()
    limit = settings.shutdown_grace.total_seconds() + LEAVE_WITHIN + 5.0
    watchdog = Watchdog(lambda: ending.asked or ending.begun or calls.gone(), UNREACHABLE, grace=limit)
    watchdog.start()
    before = signal.signal(signal.SIGTERM, _end_at_once)
    thresholds = gc.get_threshold()
    gc.freeze()  # what was imported is never garbage: looking through it cost 40 % of the time spent on an operation
    gc.set_threshold(*SELDOM)
    try:
        ledger = _ledger(calls, settings)
        with tempfile.TemporaryDirectory(prefix="counterfoil-worker-") as folder:
            parts = _parts(settings, types, ledger, calls, ending)
            parts.lease.open()
            parts.keeper.open()
            life = _live(settings, parts, types, settings.datadir or Path(folder))
    except DatabaseGone:
        log(LogEvent.STOPPED, exit_code=UNREACHABLE)
        return UNREACHABLE
    finally:
        watchdog.finished()
        gc.set_threshold(*thresholds)
        gc.unfreeze()
        signal.signal(signal.SIGTERM, before)
    log(LogEvent.STOPPED, exit_code=ending.code)
    if not life.clean:
        sys.stderr.flush()
        os._exit(ending.code)  # a thread that hangs in a library would keep the process (D34)
    engine.dispose()
    return ending.code


def _end_at_once(number: int, frame: object) -> None:
    """SIGTERM before anything was taken."""
    raise SystemExit(0)


def _types(settings: Settings, declared: Operations) -> list[RunnableType]:
    types = runnable_types(
        declared,
        settings.rules_of,
        progress_within=settings.progress_within,
        batch=settings.batch,
        lock=settings.registry_lock,
    )
    if not types:
        raise SettingsError(("operations", "has no type with an effect of its own: there is nothing for a worker to do"))
    return types


def _ledger(calls: LedgerCalls, settings: Settings) -> Ledger:
    """The ledger; waits for a database that is away."""
    ledger = calls.run(ledger_of)
    if ledger.name != settings.ledger:
        raise SettingsError(("ledger", "is not the name of the ledger in this database"))
    return ledger


def _parts(settings: Settings, types: list[RunnableType], ledger: Ledger, calls: LedgerCalls, ending: Ending) -> Parts:
    topics = topics_of(ledger.name, types)
    in_hand = InHand(most=2 * settings.batch, types=len(types))
    gates = Gates(types, settings.breaker_after)
    acknowledgements = Acknowledgements(topics)
    by_topic = {topic: next(each for each in types if each.name == name) for topic, (name, _) in topics.items()}
    ingest, watcher, broker = consuming(settings, ledger, topics, gates, Hands(in_hand, acknowledgements))
    lease = Lease(calls, f"{socket.gethostname()}:{os.getpid()}", settings.lease, _capable(types))
    writer = writer_of(ledger)
    decoding = Decoding(calls, lambda: lease.session, in_hand)
    desk = Desk(calls, writer, lease, in_hand, decoding, settings.hold_for, settings.review_within)
    pool = ThreadPoolExecutor(LEDGER_THREADS, thread_name_prefix="ledger")
    threads = Threads(settings.thread_pool)
    in_ledger = ThreadPoolExecutor(IN_LEDGER_THREADS, thread_name_prefix="in-ledger")
    several = sum(not isinstance(each.effect, Effect) for each in types) > 1
    slots = Slots(settings.effect_concurrency, settings.thread_pool, gates)
    means = Means(pool, in_ledger, IN_LEDGER_THREADS - several, slots, threads, ending.because)
    return Parts(
        calls=calls,
        lease=lease,
        keeper=Keeper(calls, lease, gates, Habits(settings.breaker_after, settings.breaker_wait)),
        gates=gates,
        in_hand=in_hand,
        ingest=ingest,
        acknowledgements=acknowledgements,
        lanes={each.name: _lane(desk, each, Admitting(desk, each, topics), means) for each in types},
        threads=threads,
        sweeper=Sweeper(
            calls,
            writer,
            {each.name: each.rules for each in types},
            SweeperPace(settings.due_batch, settings.lease, settings.resend_after, settings.review_within),
        ),
        broker=broker,
        progress=ProgressWatch(
            watcher,
            in_hand,
            Patience(
                {topic: each.patience for topic, each in by_topic.items()}, lambda topic: gates.excuses(by_topic[topic].name)
            ),
        ),
        ledger_pools=(pool, in_ledger),
        ending=ending,
        grace=settings.shutdown_grace.total_seconds(),
        lost_threads=settings.lost_threads,
    )


def _capable(types: Iterable[RunnableType]) -> dict[str, Any]:
    """What this worker can do: types, each with the schema id that it reads."""
    return {each.name: each.contract.schema_id for each in types}


def _lane(desk: Desk, type_: RunnableType, admitting: Admitting, means: Means) -> Lane:
    if isinstance(type_.effect, Effect):
        return OutsideLane(desk, type_, admitting, means)
    return InLedgerLane(type_, InLedgerWork(desk, type_, admitting), means)


# -- Faust


def _live(settings: Settings, parts: Parts, types: Iterable[RunnableType], folder: Path) -> Life:
    """Run the app until it is told to stop."""
    logging.getLogger("mode.timers").setLevel(logging.ERROR)  # it warns whenever a timer wakes a moment late
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    app = faust.App(
        "counterfoil-worker",
        broker="kafka://none",
        store="memory://",
        datadir=str(folder),
        autodiscover=False,
        web_enabled=False,
        worker_redirect_stdouts=False,
        loop=loop,
    )
    channels = {each.name: app.channel(maxsize=CHANNEL) for each in types}
    life = Life(parts, channels)
    app.boot_strategy = _boot(life)(app)
    for name, channel in channels.items():
        _host(app, name, channel, parts)
    app.timer(settings.due_every.total_seconds(), name="sweep")(life.sweep)
    app.timer(NOTE_EVERY, name="note")(life.note)
    app.timer(LOOK_EVERY, name="look")(life.look)
    app.timer(max(parts.progress.patience.shortest / 4, LOOK_EVERY), name="progress")(life.look_at_progress)
    app.flow_control.resume()  # without Faust's own consumer nobody else does it, and no agent would ever wake
    worker = faust.Worker(app, loop=loop, quiet=True, redirect_stdouts=False, override_logging=False, workdir=Path.cwd())
    worker.spinner = None  # it writes to the terminal even when quiet
    try:
        worker.execute_from_commandline()
    except SystemExit as end:
        if end.code and not parts.ending.asked:
            parts.ending.code = int(end.code) if isinstance(end.code, int) else 1
    return life


def _boot(life: Life) -> type[BootStrategy]:
    class Boot(BootStrategy):
        """No Kafka of Faust's own; our life begins after the agents and ends before them."""

        enable_kafka = False
        enable_web = False
        enable_sensors = False

        def server(self) -> Iterable[Any]:
            yield from self.agents()
            yield life

    return Boot


def _host(app: Any, name: str, channel: Any, parts: Parts) -> None:
    """One agent for one type."""
    lane = parts.lanes[name]

    async def agent(batches: AsyncIterable[Any]) -> None:
        async for batch in batches:
            try:
                lane.take(batch)
            except Exception as error:  # noqa: BLE001 - no exception leaves an agent: it would swallow a batch each time
                parts.ending.because(error)

    app.agent(channel, name=f"counterfoil.{name}")(agent)
