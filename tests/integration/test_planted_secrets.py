"""The guard of S18 searches every place that people see, and fails a test in which a planted secret shows."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import psycopg
import pytest
from confluent_kafka import Producer

from tests.support.ledgers import Bed
from tests.support.planted import Planted
from tests.support.processes import ROOT, CommandLine
from tests.support.topics import Topics


@pytest.mark.parametrize("leak", ["print(planted.payload)", "logging.getLogger('x').warning(planted.error)"])
def test_a_secret_in_output_or_log_fails_the_test_and_is_not_repeated(leak: str, tmp_path: Path) -> None:
    """S18: a test that passes by itself is failed, and the report withholds what it found."""
    test = tmp_path / "test_leaking.py"
    test.write_text(f"import logging\ndef test_leak(planted): {leak}\n")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.conftest", "-c", str(ROOT / "pyproject.toml"), str(test)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "S18: a planted secret is in its captured output" in done.stdout
    assert "(withheld)" in done.stdout
    assert "planted" not in done.stdout.replace("a planted secret", "").replace("test_planted", "")


def test_a_secret_in_the_databases_log_is_found(ledger: Bed, planted: Planted) -> None:
    """S18: PostgreSQL quotes a bad value in its own log."""
    planted.expected.add("the database's log")
    with psycopg.connect(ledger.url) as connection, pytest.raises(psycopg.errors.InvalidTextRepresentation):
        connection.execute(f"SELECT '{planted.payload}'::int".encode())


def test_a_secret_in_the_history_is_found(ledger: Bed, planted: Planted) -> None:
    """S18: events, acts and refused rows are shown to people."""
    planted.expected.add("the ledger's table act")
    with psycopg.connect(ledger.url) as connection:
        connection.execute(
            "INSERT INTO counterfoil.act (id, at, actor, action, reason, result, chain) VALUES (1, now(), 'a', 'b', %s, 'c', '')",
            [planted.error],
        )


def test_a_secret_in_a_header_is_found(topics: Topics, planted: Planted) -> None:
    """S18: headers travel to everybody who reads the topic."""
    topics.make("t")
    planted.expected.add(f"a header on {topics.name('t', 'commands')}")
    producer = Producer({"bootstrap.servers": topics.bootstrap})
    producer.produce(topics.name("t", "commands"), b"", headers=[("reason", planted.error.encode())])
    assert producer.flush(10) == 0


def test_a_secret_in_the_output_of_a_process_is_found(command_line: CommandLine, planted: Planted) -> None:
    """S18: what a command prints is searched, whether it is run to its end or only started."""
    planted.expected |= {"the output of 0-counterfoil", "the output of --help"}
    (command_line.folder / "sitecustomize.py").write_text(f"print({planted.password!r})")
    command_line.start("--help").wait()
    command_line.run("--help", code=None)
