"""A real Apache Kafka (KRaft, one node) on loopback, in a folder of its own; topics are never made by themselves.

It has two listeners: `bootstrap`, and one that tells its clients to come through a port on which nobody listens until a fault
proxy is put there (`proxied_port`), so that every connection of a client, not only the first, goes through the proxy.
"""

from __future__ import annotations

import base64
import shutil
import signal
import subprocess
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from confluent_kafka.admin import AdminClient

from counterfoil.parts.folders import locked, temporary
from counterfoil.parts.jars import java, kafka_jars
from counterfoil.parts.ports import LOOPBACK, free_ports
from counterfoil.parts.proxy import FaultProxy
from counterfoil.parts.server import PartFailed, Server, wait_until

HEAP = "1g"
PROPERTIES = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@{loopback}:{controller}
listeners=DIRECT://{loopback}:{direct},PROXIED://{loopback}:{behind},CONTROLLER://{loopback}:{controller}
advertised.listeners=DIRECT://{loopback}:{direct},PROXIED://{loopback}:{proxied}
listener.security.protocol.map=DIRECT:PLAINTEXT,PROXIED:PLAINTEXT,CONTROLLER:PLAINTEXT
inter.broker.listener.name=DIRECT
controller.listener.names=CONTROLLER
log.dirs={folder}/data
auto.create.topics.enable=false
broker.session.timeout.ms=3000
broker.heartbeat.interval.ms=500
num.network.threads=2
num.io.threads=4
offsets.topic.num.partitions=2
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=2
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.num.partitions=2
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
group.min.session.timeout.ms=1000
group.consumer.min.session.timeout.ms=1000
group.consumer.min.heartbeat.interval.ms=200
log.cleaner.dedupe.buffer.size=16777216
log.cleaner.backoff.ms=500
"""
LOGGING = """\
rootLogger.level=warn
rootLogger.appenderRef.out.ref=out
appender.out.type=Console
appender.out.name=out
appender.out.layout.type=PatternLayout
appender.out.layout.pattern=%d %p %c %m%n
"""


@dataclass
class Kafka:
    """A running broker."""

    server: Server
    direct: int  #: port of the plain listener
    behind: int  #: port of the listener that a proxy leads to
    proxied_port: int  #: port at which that listener's clients look for it
    controller: int
    _admin: AdminClient | None = field(default=None, init=False, repr=False)

    @property
    def bootstrap(self) -> str:
        """The address for clients."""
        return f"{LOOPBACK}:{self.direct}"

    @property
    def log(self) -> Path:
        """The broker's own log."""
        return self.server.log

    @property
    def pid(self) -> int:
        """The broker's process."""
        return self.server.pid

    def admin(self) -> AdminClient:
        """A client for topics and groups, kept: its futures fail once it is collected."""
        if self._admin is None:
            self._admin = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 2})
        return self._admin

    @contextmanager
    def proxy(self) -> Iterator[FaultProxy]:
        """A fault proxy whose `address` is a bootstrap address; every connection of its clients goes through it."""
        with FaultProxy(self.behind, port=self.proxied_port) as proxy:
            yield proxy

    def start(self) -> None:
        """Start it (again) on the same data and ports; returns when it answers."""
        jars = str(kafka_jars() / "*")
        logging = f"-Dlog4j2.configurationFile={self.server.folder / 'log4j2.properties'}"
        options = [f"-Xmx{HEAP}", "-Xms256m", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20", logging]
        self.server.start([java(), *options, "-cp", jars, "kafka.Kafka", str(self.server.folder / "server.properties")])
        wait_until(self._answers, within=60, what=f"Kafka (log: {self.log})")

    def stop(self) -> None:
        """A controlled shutdown."""
        self._admin = None
        self.server.stop(signal.SIGTERM)

    def kill(self) -> None:
        """SIGKILL."""
        self._admin = None
        self.server.kill()

    def pause(self) -> None:
        """SIGSTOP: connections stay open and nothing is answered."""
        self.server.pause()

    def resume(self) -> None:
        """SIGCONT."""
        self.server.resume()

    def restart(self) -> None:
        """Stop and start."""
        self.stop()
        self.start()

    def _answers(self) -> bool:
        if not self.server.running():
            raise PartFailed(f"Kafka ended while it was starting; see {self.log}")
        client = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0, "reconnect.backoff.max.ms": 100})
        try:
            return bool(client.list_topics(timeout=1).brokers)
        except Exception:  # noqa: BLE001 - whatever it says, it does not serve yet
            return False


@contextmanager
def kafka(*, share: Path | None = None) -> Iterator[Kafka]:
    """Start a broker, or join the one that another process of this run has started in the folder `share`."""
    if share is None:
        with temporary("kafka") as folder:
            started = _start(folder)
            try:
                yield started
            finally:
                started.server.leave()
                started.kill()
        return
    with locked(share / "kafka.lock"):
        joined = _join(share / "kafka") or _start(share / "kafka")
    try:
        yield joined
    finally:
        joined.server.leave()


def _join(folder: Path) -> Kafka | None:
    server = Server("kafka", folder, signal.SIGKILL)
    ports = folder / "ports"
    if not ports.exists() or not server.join():
        return None
    direct, behind, proxied, controller = map(int, ports.read_text().split())
    return Kafka(server, direct, behind, proxied, controller)


def _start(folder: Path) -> Kafka:
    for attempt in range(3):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(mode=0o711, parents=True)
        broker = Kafka(Server("kafka", folder, signal.SIGKILL, remove_at_end=folder), *free_ports(4))
        _format(broker, folder)
        try:
            broker.start()
        except PartFailed:
            if attempt == 2:
                raise
            broker.server.leave()
            continue
        break
    (folder / "ports").write_text(f"{broker.direct} {broker.behind} {broker.proxied_port} {broker.controller}")
    return broker


def _format(broker: Kafka, folder: Path) -> None:
    properties = folder / "server.properties"
    properties.write_text(
        PROPERTIES.format(
            loopback=LOOPBACK,
            folder=folder,
            direct=broker.direct,
            behind=broker.behind,
            proxied=broker.proxied_port,
            controller=broker.controller,
        )
    )
    (folder / "log4j2.properties").write_text(LOGGING)
    cluster = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
    tool = ["kafka.tools.StorageTool", "format", "-t", cluster, "-c", str(properties)]
    quick = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", f"-Dlog4j2.configurationFile={folder / 'log4j2.properties'}"]
    done = subprocess.run(
        [java(), *quick, "-cp", str(kafka_jars() / "*"), *tool], capture_output=True, text=True, check=False, cwd=folder
    )
    if done.returncode:
        raise PartFailed(f"Kafka's storage could not be formatted: {(done.stdout + done.stderr)[-1000:]}")
