"""The real servers of the test bed: they start, crash, come back, and never outlive the process that started them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import psutil
import psycopg
import pytest
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient

from counterfoil.parts import Kafka, PartFailed, Postgres, database_from_template, fault_proxy, kafka, mock_broker, postgres
from counterfoil.parts.folders import temporary
from counterfoil.parts.server import Server
from tests.support.ledgers import Bed, bulk_ledger
from tests.support.processes import ROOT
from tests.support.topics import Topics
from tests.support.waiting import eventually


def test_a_crashed_postgresql_keeps_every_commit_and_its_address() -> None:
    """The bed's server has fsync on, so that a killed server is a fair test."""
    with postgres() as server:
        with server.connect() as connection:
            connection.execute("CREATE TABLE kept (value int)")
            connection.execute("INSERT INTO kept VALUES (7)")
            assert connection.execute("SHOW fsync").fetchone() == ("on",)
        url = server.url
        server.kill()
        with pytest.raises(psycopg.OperationalError):
            psycopg.connect(url, connect_timeout=2)
        server.start()
        with psycopg.connect(url) as connection:
            assert connection.execute("SELECT value FROM kept").fetchall() == [(7,)]
        folder = server.server.folder
    assert not folder.exists()


def test_servers_end_with_a_process_that_is_killed(tmp_path: Path) -> None:
    """SIGKILL leaves no server and no folder behind."""
    program = "from counterfoil.parts import postgres\nwith postgres() as p: print(p.pid, p.server.folder, flush=True); input()"
    starter = subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT)
    with starter:
        assert starter.stdout is not None
        pid, folder = starter.stdout.readline().split()
        assert psutil.pid_exists(int(pid))
        starter.kill()
    eventually(lambda: not psutil.pid_exists(int(pid)), what="end of the server")
    eventually(lambda: not Path(folder.decode()).exists(), what="removal of its folder")


def test_two_users_of_a_run_share_one_server() -> None:
    """The second joins the first's, and the last one to leave ends it."""
    with temporary("share") as folder, postgres(share=folder) as first:
        with postgres(share=folder) as second:
            assert second.port == first.port
        with first.connect() as connection:
            assert connection.execute("SELECT 1").fetchone() == (1,)
        pid = first.pid
    eventually(lambda: not psutil.pid_exists(pid), what="end of the shared server")


def test_a_server_that_cannot_start_says_where_its_log_is(tmp_path: Path) -> None:
    """A command that is not there is no silence."""
    server = Server("nobody", tmp_path, signal.SIGTERM)
    with pytest.raises(PartFailed, match=r"nobody\.log"):
        server.start([str(tmp_path / "absent")])
    server.leave()


def test_each_test_has_a_ledger_of_its_own_name_and_clock(postgres: Postgres, ledger: Bed) -> None:
    """A shifted clock is seen in that ledger only."""
    ledger.shift(timedelta(days=3))
    with database_from_template(postgres) as other, psycopg.connect(other.url) as connection:
        row = connection.execute("SELECT counterfoil.ledger_time() - now() < interval '1 hour'").fetchone()
        assert row == (True,)
        assert other.ledger != ledger.name
    assert ledger.one("SELECT value FROM counterfoil.setting WHERE name = 'ledger'") == ledger.name
    assert ledger.one("SELECT counterfoil.ledger_time() - now() > interval '71 hours'") is True


def test_a_large_ledger_is_written_without_enqueue(ledger: Bed) -> None:
    """Ten thousand operations, one in a hundred open, all of them sound to the tables' own checks."""
    bulk_ledger(ledger.engine, 10_000, open_share=0.01)
    counted = {row["state"]: row["n"] for row in ledger.rows("SELECT state, count(*) AS n FROM counterfoil.state GROUP BY state")}
    assert counted == {"queued": 100, "confirmed": 9_900}
    assert ledger.one("SELECT count(*) FROM counterfoil.state WHERE due_at IS NULL") == 9_900
    assert ledger.one("SELECT count(*) FROM counterfoil.event") == 10_000


@pytest.mark.parametrize(("delivered", "kept"), [(False, 0), (True, 1)])
def test_a_connection_can_be_cut_before_and_after_the_server_commits(ledger: Bed, delivered: bool, kept: int) -> None:
    """Both look the same to the client, which is what D89 is about."""
    with fault_proxy(ledger.server.port) as proxy:
        connection = psycopg.connect(ledger.server.url_of(ledger.database.name, port=proxy.port))
        connection.execute("CREATE TABLE public.cut (value int)")
        connection.commit()
        connection.execute("INSERT INTO public.cut VALUES (1)")
        seen = proxy.cut_at(b"COMMIT", delivered=delivered)
        with pytest.raises(psycopg.OperationalError):
            connection.commit()
        connection.close()
        assert seen.wait(5)
    assert ledger.one("SELECT count(*) FROM public.cut") == kept


def test_a_proxy_stalls_refuses_and_passes_again(postgres: Postgres) -> None:
    """Silence, refusal and recovery are three different faults."""
    with fault_proxy(postgres.port) as proxy:
        url = postgres.url_of("postgres", port=proxy.port)
        with psycopg.connect(url) as connection:
            proxy.stall()
            with pytest.raises(psycopg.OperationalError, match="timeout"):
                psycopg.connect(url, connect_timeout=2)
            proxy.resume()
            assert connection.execute("SELECT 1").fetchone() == (1,)
            connection.rollback()
            proxy.refuse()
            with pytest.raises(psycopg.OperationalError):
                connection.execute("SELECT 1")
        with pytest.raises(psycopg.OperationalError):
            psycopg.connect(url, connect_timeout=2)
        proxy.resume()
        with psycopg.connect(url) as connection:
            assert connection.execute("SELECT 2").fetchone() == (2,)
        eventually(lambda: proxy.connections == 0, what="closed connections")


def test_a_topic_is_never_made_by_itself(kafka: Kafka, topics: Topics) -> None:
    """A producer to an absent topic is told so; nothing appears (D13)."""
    reports: list[str] = []
    producer = Producer({"bootstrap.servers": kafka.bootstrap, "message.timeout.ms": 1500, "log_level": 0})
    producer.produce(topics.name("nope"), b"value", on_delivery=lambda error, _: reports.append(str(error)))
    assert producer.flush(10) == 0
    assert len(reports) == 1
    assert reports[0] != "None"
    assert topics.existing() == set()


def test_the_topics_of_a_ledger_are_made_read_back_and_dropped(kafka: Kafka, ledger: Bed, topics: Topics) -> None:
    """Records come back in the order of their offsets, each partition whole."""
    topics.make("sync_customer")
    commands = topics.name("sync_customer", "commands")
    producer = Producer({"bootstrap.servers": kafka.bootstrap, "enable.idempotence": True})
    for number in range(100):
        producer.produce(commands, str(number).encode(), key=str(number % 7).encode(), headers=[("cf_number", b"1")])
    assert producer.flush(10) == 0
    read = topics.records(commands)
    assert sorted(int(record.value() or b"") for record in read) == list(range(100))
    assert topics.existing() == {
        commands, topics.name("sync_customer", "retry"), topics.name("state"), topics.name("dead-letters"),
    }  # fmt: skip


def test_every_connection_of_a_kafka_client_goes_through_the_proxy(kafka: Kafka, topics: Topics) -> None:
    """The broker advertises the proxy's address, so a cut reaches the produce requests, not only the first look-up."""
    topics.make("t")
    target = topics.name("t", "commands")
    with kafka.proxy() as proxy:
        reports: list[object] = []
        producer = Producer({"bootstrap.servers": proxy.address, "message.timeout.ms": 2000, "log_level": 0})
        producer.produce(target, b"1", on_delivery=lambda error, _: reports.append(error))
        assert producer.flush(10) == 0
        proxy.refuse()
        producer.produce(target, b"2", on_delivery=lambda error, _: reports.append(error))
        assert producer.flush(10) == 0
        assert reports[0] is None
        assert reports[1] is not None
    assert [record.value() for record in topics.records(target)] == [b"1"]


def test_a_killed_broker_keeps_what_it_acknowledged() -> None:
    """Its own broker, killed and started again on the same address."""
    with kafka() as broker:
        mine = Topics(broker, "mine", partitions=1)
        mine.make("t")
        producer = Producer({"bootstrap.servers": broker.bootstrap, "acks": "all"})
        producer.produce(mine.name("t", "commands"), b"kept")
        assert producer.flush(10) == 0
        broker.kill()
        with pytest.raises(KafkaException):
            AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": 0}).list_topics(timeout=1)
        broker.start()
        assert [record.value() for record in mine.records(mine.name("t", "commands"))] == [b"kept"]


def test_the_mock_cluster_takes_and_gives_records() -> None:
    """For the demo only; topics appear by themselves there."""
    with mock_broker() as bootstrap:
        producer = Producer({"bootstrap.servers": bootstrap})
        reports: list[object] = []
        producer.produce("any", b"1", on_delivery=lambda error, _: reports.append(error))
        assert producer.flush(10) == 0
        assert reports == [None]


def test_a_failpoint_kills_the_process_that_passes_it(tmp_path: Path) -> None:
    """Armed by the environment, it leaves its file first."""
    passing = "failpoint('relay.after_ack')"
    program = f"from counterfoil.failpoints import failpoint\n{passing}; print('alive', flush=True); {passing}"
    armed = {**os.environ, "COUNTERFOIL_FAILPOINTS": "relay.after_ack=kill@2", "COUNTERFOIL_FAILPOINTS_DIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", program], env=armed, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (-signal.SIGKILL, "alive\n")
    assert (tmp_path / "relay.after_ack").exists()
