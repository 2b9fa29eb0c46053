"""`counterfoil relay`: publishes outbox rows until SIGTERM, and leaves with a code that says why.

It puts the parts together and owns the process's end: a database or broker that is away is waited for, up to `stop_after`;
SIGTERM sends nothing new, waits for the reports that are due, notes them and gives the shards back. What was not acknowledged
stays in the outbox.
"""

import gc
import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from sqlalchemy import Connection, Engine, exc

from counterfoil.core.events import LogEvent
from counterfoil.core.operation_type import Operations
from counterfoil.ledger.acknowledgements import drop_acknowledged
from counterfoil.ledger.away import is_away
from counterfoil.ledger.engine import in_transaction, ledger_engine
from counterfoil.ledger.names import Ledger, ledger_of
from counterfoil.ledger.partitions import drop_published, make_ahead
from counterfoil.ledger.relaying import Terms, oldest_waiting
from counterfoil.reporting import writer_of
from counterfoil.settings import Settings
from counterfoil.streams.lifeline import FAULT, UNREACHABLE, Line, Watchdog
from counterfoil.streams.relay.floors import Floors, Pace
from counterfoil.streams.relay.gate import Gate
from counterfoil.streams.relay.noting import Noter
from counterfoil.streams.relay.outgoing import Composer
from counterfoil.streams.relay.publisher import Publisher, Sending
from counterfoil.streams.relay.refusals import Refusals
from counterfoil.streams.relay.rounds import ProducerBroken, Relay
from counterfoil.streams.relay.shards import Shards
from counterfoil.streams.roads import Roads
from counterfoil.streams.topics.admin import TopicAdmin
from counterfoil.streams.topics.plan import choice_of
from counterfoil.streams.topics.wishes import HEADROOM
from counterfoil.telemetry import alarm, log

LONGEST_TURN = 0.25  #: seconds; how late a signal or a renewal may be noticed
STALLED = 60.0  #: seconds after which the oldest unpublished row is an alarm (D02)
LOOK_EVERY, TIDY_EVERY = 10.0, 3600.0  #: seconds
TIDY_LIMIT, TIDY_AGAIN = (
    5_000,
    1.0,
)  #: notes of offset commits that are deleted at once; seconds until the next, where there are more


@dataclass
class _Process:
    """One relay process: its settings, lines and the times of what it does now and then."""

    settings: Settings
    engine: Engine
    database: Line
    noting: Line
    broker: Line
    stop: threading.Event
    renew_at: float = 0.0
    look_at: float = 0.0
    tidy_at: float = 0.0
    stop_since: float | None = None

    @property
    def lost(self) -> bool:
        """Something has been away for too long."""
        longest = max(line.lost_for for line in (self.database, self.noting, self.broker))
        return longest > self.settings.stop_after.total_seconds()

    @property
    def should_be_gone(self) -> bool:
        """For the watchdog: the process ought to have ended."""
        if self.stop_since is not None:
            return time.monotonic() - self.stop_since > self.settings.shutdown_grace.total_seconds()
        return self.lost


def run(settings: Settings, operations: Operations) -> int:
    """Run until SIGTERM or SIGINT; answers the exit code: 0, 3 (database or broker lost) or 4 (a fault)."""
    _collect_less_often()
    stop = threading.Event()
    engine = ledger_engine(settings.database, pool_size=max(3, settings.database_pool))
    process = _Process(settings, engine, Line("database"), Line("database"), Line("broker"), stop)
    watchdog = Watchdog(lambda: process.should_be_gone, UNREACHABLE, grace=5.0)
    watchdog.start()
    with _signals(process):
        try:
            code = _run(process, operations)
        except (exc.DBAPIError, exc.TimeoutError) as error:
            alarm(LogEvent.UNEXPECTED, error_class=type(error).__name__, error_code=str(getattr(error, "code", "")))
            code = UNREACHABLE if is_away(error) else FAULT
        except ProducerBroken:
            alarm(LogEvent.BROKER_LOST, error_class="ProducerBroken")
            code = FAULT
        finally:
            watchdog.finished()
            engine.dispose()
    log(LogEvent.STOPPED, exit_code=code)
    return code


def _collect_less_often() -> None:
    """Thousands of live tuples a pass hold no cycles; looking for some at every 700th cost half of the sending, measured."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)


def _run(process: _Process, operations: Operations) -> int:
    settings = process.settings
    ledger = _ledger(process)
    if ledger is None:
        return 0 if process.stop.is_set() else UNREACHABLE
    relay, gate = _assembled(process, operations, ledger)
    log(LogEvent.STARTED, ledger=ledger.name, worker=relay.shards.name, kind="embedded" if settings.embedded else "relay")
    relay.noter.start()
    if gate is not None:
        gate.start()
    while not process.stop.is_set() and not process.lost:
        _one_turn(process, relay)
    lost = process.lost
    relay.reader.close()
    if gate is not None:
        gate.leave()
    return _leave(process, relay, lost=lost)


def _ledger(process: _Process) -> Ledger | None:
    """The ledger; waits for a database that is away, not for one that holds no ledger."""
    while not process.stop.is_set() and not process.lost:
        process.database.asked()
        try:
            with process.engine.connect() as connection:
                ledger = ledger_of(connection)
        except (exc.DBAPIError, exc.TimeoutError) as error:
            if not is_away(error):
                raise
            process.database.bad(type(error).__name__)
            process.stop.wait(0.5)
        else:
            process.database.good()
            return ledger
    return None


def _assembled(process: _Process, operations: Operations, ledger: Ledger) -> tuple[Relay, Gate | None]:
    settings, engine = process.settings, process.engine
    name = f"{socket.gethostname()}:{os.getpid()}"
    sending = Sending(
        settings.brokers, settings.kafka, settings.relay_delivery_timeout, settings.topic_message_bytes + 2 * HEADROOM
    )
    rules = {one.name: settings.rules_of(one) for one in operations.types}
    roads = Roads(ledger.name, verified=not settings.embedded)
    shards = Shards(name, Terms(settings.relay_lease, settings.relay_delivery_timeout))
    relay = Relay(
        engine=engine,
        shards=shards,
        roads=roads,
        publisher=Publisher(sending),
        alone=lambda: Publisher(sending, one_by_one=True),
        noter=Noter(engine, lambda: shards.session or 0, process.noting),
        refusals=Refusals(engine, writer_of(ledger), rules),
        floors=Floors(settings.relay_batch, settings.relay_floor_every.total_seconds()),
        pace=Pace(settings.relay_poll_min.total_seconds(), settings.relay_poll_max.total_seconds()),
        composer=Composer(ledger.name),
        delivered=process.broker.good,
        database=process.database,
    )
    if settings.embedded:
        return relay, None  # the mock cluster shows no topic settings and makes topics on first use
    admin = TopicAdmin(settings.brokers, settings.kafka)
    every = settings.topics_verified_every.total_seconds()
    gate = Gate(admin, choice_of(settings), operations, roads, engine, process.broker, every, relay.road_opened)
    relay.look_soon = gate.look_soon
    return relay, gate


def _one_turn(process: _Process, relay: Relay) -> None:
    """Renew, look, read, send and take reports in; a database that is away is noted and waited for."""
    try:
        _now_and_then(process, relay)
        relay.turn(LONGEST_TURN)
    except (exc.DBAPIError, exc.TimeoutError) as error:
        if not is_away(error):
            raise
        process.database.bad(type(error).__name__)
        relay.floors.from_zero()
        relay.publisher.poll(0.25)


def _now_and_then(process: _Process, relay: Relay) -> None:
    now, settings = time.monotonic(), process.settings
    if now >= process.renew_at:
        process.database.asked()
        relay.shards.renew(process.engine, relay.flight.shards)
        process.database.good()
        full = relay.shards.leaving or not relay.shards.epochs
        process.renew_at = now + settings.relay_lease.total_seconds() / (10 if full else 3)
    if now >= process.look_at:
        process.look_at = now + LOOK_EVERY
        if relay.noted:
            log(LogEvent.PUBLISHED, count=relay.noted)
            relay.noted = 0
        with process.engine.connect() as connection:
            age = oldest_waiting(connection, list(relay.shards.epochs))
        if age is not None and age > STALLED:
            alarm(LogEvent.OUTBOX_STALLED, seconds=round(age, 1))
    if now >= process.tidy_at:
        more = in_transaction(process.engine, lambda connection: _tidy(connection, settings))
        process.tidy_at = now + (TIDY_AGAIN if more else TIDY_EVERY)


def _tidy(connection: Connection, settings: Settings) -> bool:
    """Whether there is more to do soon."""
    make_ahead(connection, settings.partitions_ahead)
    drop_published(connection, settings.published_kept)
    return drop_acknowledged(connection, settings.published_kept, limit=TIDY_LIMIT) == TIDY_LIMIT


def _leave(process: _Process, relay: Relay, *, lost: bool) -> int:
    """Flush what was sent, note what was acknowledged, give the shards back."""
    process.stop_since = process.stop_since or time.monotonic()
    log(LogEvent.STOPPING, count=len(relay.flight))
    deadline = process.stop_since + process.settings.shutdown_grace.total_seconds() * 0.8
    try:
        if not lost:
            relay.drain(deadline)
        noted = relay.noter.close(max(0.5, deadline - time.monotonic()))
        relay.take_reports(0)
        if noted and process.database.lost_for == 0:
            relay.shards.leave(process.engine, relay.unresolved())
    except (exc.DBAPIError, exc.TimeoutError) as error:
        process.database.bad(type(error).__name__)  # leases end by themselves
    return UNREACHABLE if lost else 0


@contextmanager
def _signals(process: _Process) -> Iterator[None]:
    """SIGTERM and SIGINT ask for a clean end. In a thread that is not the main one nothing is installed."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def asked(number: int, _: object) -> None:
        process.stop_since = process.stop_since or time.monotonic()
        process.stop.set()

    before = {number: signal.signal(number, asked) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
