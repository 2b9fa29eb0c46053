"""The fixtures: real servers once a run, a ledger and topics of its own for each test, processes, and the guard of S18."""

from __future__ import annotations

import os
import secrets
import shutil
import tempfile
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from sqlalchemy import make_url

from counterfoil.ledger.engine import ledger_engine
from counterfoil.parts import Kafka, Postgres, database_from_template
from counterfoil.parts import kafka as running_kafka
from counterfoil.parts import postgres as running_postgres
from tests.support.ledgers import Bed
from tests.support.planted import Planted, holds_secret
from tests.support.processes import CommandLine
from tests.support.topics import Topics

PLANTED = pytest.StashKey[Planted]()


SHARE = "COUNTERFOIL_TEST_SHARE"


def _share() -> Path | None:
    """The folder through which the processes of one pytest-xdist run share their servers."""
    folder = os.environ.get(SHARE)
    return Path(folder) if folder else None


def pytest_configure(config: pytest.Config) -> None:
    """With -n, make the shared folder before any process of the run begins."""
    if getattr(config.option, "numprocesses", None) and SHARE not in os.environ:
        os.environ[SHARE] = tempfile.mkdtemp(prefix="counterfoil-run-")
        Path(os.environ[SHARE]).chmod(0o711)
        config.add_cleanup(lambda: shutil.rmtree(os.environ.pop(SHARE), ignore_errors=True))


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """PostgreSQL 18, started once a run. A test that stops or crashes a server starts one of its own."""
    with running_postgres(share=_share()) as server:
        yield server


@pytest.fixture(scope="session")
def kafka() -> Iterator[Kafka]:
    """Apache Kafka, started once a run. A test that stops or crashes a broker starts one of its own."""
    with running_kafka(share=_share()) as broker:
        yield broker


@pytest.fixture(autouse=True)
def planted(request: pytest.FixtureRequest) -> Iterator[Planted]:
    """Secrets to plant in payloads, keys, errors and passwords; the test fails if one is seen where it must not be (S18)."""
    node: pytest.Item = request.node
    mine = node.stash.setdefault(PLANTED, Planted())
    yield mine
    mine.search_files()


@pytest.fixture
def ledger(postgres: Postgres, planted: Planted) -> Iterator[Bed]:
    """A migrated ledger in a database of its own, with a name that no other test has."""
    planted.watch(postgres.log, "the database's log")
    with database_from_template(postgres, renamed=f"t{secrets.token_hex(5)}") as database:
        url = make_url(database.url).set(password=planted.password).render_as_string(hide_password=False)
        engine = ledger_engine(url, pool_size=10)
        try:
            yield Bed(postgres, database, engine, url)
        finally:
            engine.dispose()
            planted.search_history(database.url)


@pytest.fixture
def topics(kafka: Kafka, ledger: Bed, planted: Planted) -> Iterator[Topics]:
    """The ledger's topics: none is there until the test makes it."""
    mine = Topics(kafka, ledger.name)
    yield mine
    mine.search(planted)
    mine.drop()


@pytest.fixture
def command_line(request: pytest.FixtureRequest, tmp_path: Path, planted: Planted) -> Iterator[CommandLine]:
    """`counterfoil` in processes of its own, on the test's ledger and topics where it has them."""
    line = CommandLine(tmp_path, planted)
    if "ledger" in request.fixturenames:
        bed: Bed = request.getfixturevalue("ledger")
        line.settings |= {"ledger": bed.name, "database": bed.url}
    if "topics" in request.fixturenames:
        topics: Topics = request.getfixturevalue("topics")
        line.settings |= {"brokers": topics.bootstrap, "topic_partitions": str(topics.partitions), "topic_replication": "1"}
    yield line
    line.end_all()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Fail a test whose output, logs, processes, history or headers show a planted secret."""
    report = yield
    seen = item.stash.get(PLANTED, None)
    if seen is None or report.when == "setup":
        return report
    seen.saw("its captured output", [text for title, text in report.sections if "Captured" in title])
    wrong = seen.verdict(ended=report.when == "teardown")
    if wrong is not None and not report.failed:
        report.outcome = "failed"
        report.longrepr = wrong
        report.sections = [(title, "(withheld)" if holds_secret(text) else text) for title, text in report.sections]
    return report
