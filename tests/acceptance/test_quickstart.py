"""The README's example and the quickstart, followed word by word on real servers."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from counterfoil.parts import Kafka, Postgres
from tests.support.processes import ROOT, CommandLine
from tests.support.topics import Topics
from tests.support.tutorial import Reader


@pytest.fixture
def reader(postgres: Postgres, kafka: Kafka, command_line: CommandLine, tmp_path: Path) -> Iterator[Reader]:
    """A reader in an empty folder beside the examples, with an empty database and a broker without topics."""
    database = f"reader_{secrets.token_hex(4)}"
    settings = {"database": postgres.create_database(database), "brokers": kafka.bootstrap, "topic_partitions": "4"}
    folder = tmp_path / "clone"
    folder.mkdir()
    (folder / "examples").symlink_to(ROOT / "examples")
    yield Reader(command_line, settings, folder)
    command_line.end_all()
    postgres.drop_database(database)


@contextmanager
def topics_of(kafka: Kafka, ledger: str) -> Iterator[None]:
    """A page names its ledger, so its topics are dropped by that name; no other test uses it."""
    try:
        yield
    finally:
        Topics(kafka, ledger).drop()


@pytest.mark.timeout(400)
def test_the_quickstart_prints_what_it_says(reader: Reader, kafka: Kafka) -> None:
    with topics_of(kafka, "first"):
        assert reader.follow((ROOT / "docs/quickstart.md").read_text()) >= 15


@pytest.mark.timeout(240)
def test_the_readme_shortest_example_runs_as_it_stands(reader: Reader, kafka: Kafka) -> None:
    page = (ROOT / "README.md").read_text()
    begins, ends = page.index("## The shortest example"), page.index("## What it promises")
    with topics_of(kafka, "shop"):
        assert reader.follow(page[begins:ends]) == 2
    for name in ("shop.py", "welcome.avsc"):
        assert (reader.folder / name).read_text() == (ROOT / "examples/first" / name).read_text()
