"""What the bench stands on: a real PostgreSQL and a real Kafka, a fresh ledger with its topics for each part, our processes.

All of it is started here and gone at the end. Nothing is measured here but the memory of our processes.
"""

import os
import secrets
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psutil
from sqlalchemy import Engine, text

from counterfoil.bench.declared import TABLE
from counterfoil.demo.processes import Process, run
from counterfoil.ledger.engine import ledger_engine
from counterfoil.ledger.migrate import initialise
from counterfoil.parts import Kafka, Postgres, kafka, postgres

PATIENCE = 120.0  #: seconds; what takes longer has stopped
#: Commit times are the database's own.
SERVER = {"track_commit_timestamp": "on"}
MIB = 1024 * 1024


class Stuck(RuntimeError):
    """Something that was waited for did not come."""


@dataclass
class Bed:
    """One ledger with its topics."""

    name: str
    url: str
    engine: Engine
    folder: Path
    brokers: str
    settings: dict[str, str]
    peaks: dict[str, float]

    def topic(self, *parts: str) -> str:
        return ".".join((self.name, *parts))

    @contextmanager
    def running(self, role: str, **settings: str) -> Iterator[Process]:
        """`counterfoil relay` or `counterfoil worker`, ended by SIGTERM; its peak of memory is kept."""
        process = Process(role, [role], self.folder, self.settings | _variables(settings))
        try:
            yield process
            process.must_run()
            self.peaks[role] = max(self.peaks.get(role, 0.0), _peak(process.pid))
        finally:
            process.stop()

    def wait(self, process: Process, condition: Callable[[], bool], what: str, every: float = 0.05) -> None:
        """Until the condition holds. Raises Stuck, and Died where the process has ended."""
        end = time.monotonic() + PATIENCE
        while not condition():
            process.must_run()
            if time.monotonic() > end:
                raise Stuck(f"{what} did not come within {PATIENCE:.0f} s: see {process.log}")
            time.sleep(every)


@dataclass
class Stage:
    """The servers, and what our processes needed at most."""

    database: Postgres
    broker: Kafka
    folder: Path
    peaks: dict[str, float] = field(default_factory=dict)  #: MiB by role

    @contextmanager
    def bed(self, part: str, operations: str = "OPERATIONS") -> Iterator[Bed]:
        """A fresh ledger for one part, whose processes know the types of `operations` in `declared`."""
        name = f"bench-{part}-{secrets.token_hex(3)}".replace("_", "-")
        url = self.database.create_database(name)
        initialise(url, ledger=name)
        engine = ledger_engine(url, pool_size=8)
        with engine.begin() as connection:
            connection.execute(text(TABLE))
        folder = self.folder / name
        folder.mkdir()
        settings = _variables(
            {
                "ledger": name,
                "database": url,
                "operations": f"counterfoil.bench.declared:{operations}",
                "brokers": self.broker.bootstrap,
                "topic_replication": "1",
            }
        )
        run(["topics", "apply"], folder, settings)
        try:
            yield Bed(name, url, engine, folder, self.broker.bootstrap, settings, self.peaks)
        finally:
            engine.dispose()
            self.database.drop_database(name)


@contextmanager
def stage() -> Iterator[Stage]:
    """Both servers; the folder with the processes' logs is kept where something failed."""
    folder = Path(tempfile.mkdtemp(prefix="counterfoil-bench-"))
    with ExitStack() as parts:
        database = parts.enter_context(postgres(settings=SERVER))
        broker = parts.enter_context(kafka())
        yield Stage(database, broker, folder)
    shutil.rmtree(folder, ignore_errors=True)


def _variables(settings: dict[str, str]) -> dict[str, str]:
    return {f"COUNTERFOIL_{name.upper()}": value for name, value in settings.items()}


def _peak(pid: int) -> float:
    """The most memory that a process has held so far, in MiB; what it holds now where the system does not know."""
    try:
        status = Path(f"/proc/{pid}/status").read_text("ascii", errors="replace")
    except OSError:
        return float(psutil.Process(pid).memory_info().rss) / MIB
    kilobytes = next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM:"))
    return int(kilobytes) / 1024


def processors() -> int:
    """How many processors everything shares here."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
