"""`make ready`, on the servers of this run."""

from __future__ import annotations

import subprocess
import sys

import orjson
import pytest

from counterfoil.parts import Kafka, Postgres
from tests.support.processes import ROOT


@pytest.mark.timeout(300)
def test_a_kill_temporary_errors_and_an_invalid_payload_end_as_they_must(postgres: Postgres, kafka: Kafka) -> None:
    """S1, S8, S12, S22, L4: what `operations show`, the sink's journal and the topics say of three known operations."""
    where = ["--database", postgres.url_of("postgres"), "--brokers", kafka.bootstrap]
    command = [sys.executable, "-m", "counterfoil.demo.ready", "--json", *where]
    done = subprocess.run(command, capture_output=True, check=False, cwd=ROOT, timeout=280)
    assert done.returncode == 0, (done.stdout + done.stderr).decode()
    told = orjson.loads(done.stdout)
    assert (len(told["operations"]), told["failed"]) == (3, 0)
    assert told["checks"] >= 18
