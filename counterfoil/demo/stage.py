"""What the demo stands on: a database, a broker, the misbehaving CRM and a folder for reports; all of it gone at the end.

Real servers may be given: then a database of its own is made on that server, and topics of its own on those brokers.
"""

import secrets
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Engine, make_url, text

from counterfoil.core.operation_type import Operations
from counterfoil.demo import processes
from counterfoil.demo.declared import CRM_URL, OPERATIONS, STORE_FOLDER
from counterfoil.ledger.engine import ledger_engine
from counterfoil.ledger.migrate import initialise
from counterfoil.parts import mock_broker, postgres
from counterfoil.sinks.fake import Behaviour, FakeSink, Plan

EMBEDDED = "embedded"
#: What the CRM does with the first two requests of a key; every later one is answered as it should be.
MISBEHAVIOUR = {Behaviour.ERROR_APPLIED: 0.05, Behaviour.ANSWER_LOST: 0.05, Behaviour.SLOW: 0.04, Behaviour.RATE_LIMIT: 0.05}
#: Longer than the effect's timeout, so that the answer comes when nobody waits for it.
SLOW_SECONDS = 1.5


@dataclass(frozen=True)
class Stage:
    """What runs, and how a process of ours finds it."""

    folder: Path
    store: Path
    crm: FakeSink
    engine: Engine
    settings: dict[str, str]
    embedded: bool


@contextmanager
def stage(database: str | None, brokers: str | None, seed: int) -> Iterator[Stage]:
    """All parts, with an empty ledger and its topics."""
    # A fixed name where everything is the demo's own: then each run has the same operations and meets the same faults.
    name = "demo" if database is None and brokers is None else f"demo-{secrets.token_hex(4)}"
    with ExitStack() as parts:
        folder = parts.enter_context(own_folder())
        for one in ("crm", "store"):
            (folder / one).mkdir()
        url = parts.enter_context(own_database(database, name))
        address = brokers or parts.enter_context(mock_broker())
        plan = Plan(shares=MISBEHAVIOUR, shared_calls=2, seconds=SLOW_SECONDS, seed=seed)
        crm = parts.enter_context(FakeSink.started(folder / "crm", plan))
        initialise(url, ledger=name)
        settings = _settings(name, url, address, embedded=brokers is None)
        settings |= {CRM_URL: crm.url, STORE_FOLDER: str(folder / "store")}
        if brokers is None:
            _make_mock_topics(address, name)
        else:
            processes.run(["topics", "apply"], folder, settings)
            parts.callback(drop_topics, address, name)
        engine = ledger_engine(url, pool_size=8)
        parts.callback(engine.dispose)
        yield Stage(folder, folder / "store", crm, engine, settings, embedded=brokers is None)


def _settings(ledger: str, database: str, brokers: str, *, embedded: bool) -> dict[str, str]:
    """Leases, waits and time-outs of a demo: short enough to see a lost worker's work taken up."""
    chosen = {
        "ledger": ledger,
        "database": database,
        "operations": "counterfoil.demo.declared:OPERATIONS",
        "brokers": brokers,
        "embedded": str(embedded).lower(),
        "topic_partitions": "8",
        "topic_replication": "1",
        "lease": "3s",
        "send_grace": "1s",
        "due_every": "0.2s",
        "resend_after": "5s",
        "shutdown_grace": "5s",
        "relay_lease": "3s",
        "relay_delivery_timeout": "5s",
        "kafka": '{"session.timeout.ms": "6000", "heartbeat.interval.ms": "1000"}',
        "log_operations": "false",
    }
    return {f"COUNTERFOIL_{name.upper()}": value for name, value in chosen.items()}


@contextmanager
def own_folder() -> Iterator[Path]:
    """A folder that is gone at the end; after an error it stays, for its logs."""
    folder = Path(tempfile.mkdtemp(prefix="counterfoil-demo-"))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def own_database(given: str | None, name: str) -> Iterator[str]:
    """A database of the demo's own: on the wheel's server, or on the one that was given."""
    if given is None:
        with postgres() as server:
            yield server.create_database(name)
        return
    engine = ledger_engine(given, pool_size=1).execution_options(isolation_level="AUTOCOMMIT")
    quoted = engine.dialect.identifier_preparer.quote(name)
    try:
        with engine.connect() as connection:
            connection.execute(text(f"CREATE DATABASE {quoted}"))
        try:
            yield make_url(given).set(database=name).render_as_string(hide_password=False)
        finally:
            with engine.connect() as connection:
                connection.execute(text(f"DROP DATABASE IF EXISTS {quoted} WITH (FORCE)"))
    finally:
        engine.dispose()


def topics_of(ledger: str, operations: Operations = OPERATIONS) -> list[str]:
    """The ledger's state and dead-letter topics, and each type's two."""
    from counterfoil.core.roads import DEAD_LETTER, STATE, TO_WORKERS, road_of, topic_of

    roads = [STATE, DEAD_LETTER, *(road_of(kind, one.name) for one in operations.types for kind in TO_WORKERS)]
    return [topic_of(ledger, road) for road in roads]


def _make_mock_topics(address: str, ledger: str) -> None:
    """On the mock cluster a topic is there once somebody asked for it; it offers no other way."""
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": address})
    for topic in topics_of(ledger):
        producer.list_topics(topic, timeout=10)


def drop_topics(address: str, ledger: str, operations: Operations = OPERATIONS) -> None:
    """Delete the ledger's topics, where the broker lets us."""
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import AdminClient

    admin = AdminClient({"bootstrap.servers": address})
    for future in admin.delete_topics(topics_of(ledger, operations)).values():
        try:
            future.result(10)
        except KafkaException:
            continue  # a broker may forbid it; they are named for this run
