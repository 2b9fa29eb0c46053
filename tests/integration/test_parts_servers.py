"""`python -m counterfoil.parts.servers`: what the quickstart's reader starts."""

import signal
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
from confluent_kafka.admin import AdminClient

from tests.support.waiting import eventually


@contextmanager
def servers(settings: Path, *arguments: str) -> Iterator[dict[str, str]]:
    """The servers, with what they told of themselves in the file, until Ctrl-C."""
    had = settings.read_text() if settings.exists() else ""
    printed = settings.with_name("printed") if arguments else settings
    command = [sys.executable, "-m", "counterfoil.parts.servers", *arguments]
    with printed.open("wb") as out:
        process = subprocess.Popen(command, stdout=out, stderr=subprocess.DEVNULL, start_new_session=True)

    def told() -> dict[str, str]:
        found: dict[str, str] = {} if settings.read_text() in {"", had} else tomllib.loads(settings.read_text())
        return found if {"database", "brokers"} <= found.keys() else {}

    try:
        yield eventually(told, within=60, what="the two lines")
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0
    finally:
        process.kill()
        process.wait(10)


def test_the_readers_servers_print_their_settings_and_end_by_ctrl_c(tmp_path: Path) -> None:
    with servers(tmp_path / "counterfoil.toml") as told:
        assert len(told) == 2
        with psycopg.connect(told["database"]) as connection:
            assert connection.execute("SELECT current_database()").fetchone() == ("books",)
        assert AdminClient({"bootstrap.servers": told["brokers"], "log_level": 0}).list_topics(timeout=10).topics == {}


def test_the_readers_servers_write_their_lines_over_those_of_the_run_before(tmp_path: Path) -> None:
    file = tmp_path / "counterfoil.toml"
    file.write_text('database = "postgresql://old"\nbrokers = "old:1"\nledger = "first"\n')
    with servers(file, "--write", str(file)) as told:
        assert told["ledger"] == "first"
        assert not [value for value in told.values() if "old" in value]
        assert (tmp_path / "printed").read_text() == ""
