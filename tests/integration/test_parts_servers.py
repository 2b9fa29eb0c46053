"""`python -m counterfoil.parts.servers`: what the quickstart's reader starts."""

import signal
import subprocess
import sys
import tomllib
from pathlib import Path

import psycopg
from confluent_kafka.admin import AdminClient

from tests.support.waiting import eventually


def test_the_readers_servers_print_their_settings_and_end_by_ctrl_c(tmp_path: Path) -> None:
    with (tmp_path / "printed").open("wb") as printed:
        command = [sys.executable, "-m", "counterfoil.parts.servers"]
        process = subprocess.Popen(command, stdout=printed, stderr=subprocess.DEVNULL, start_new_session=True)

    def settings() -> dict[str, str]:
        found: dict[str, str] = tomllib.loads((tmp_path / "printed").read_text())
        return found if len(found) == 2 else {}

    try:
        told = eventually(settings, within=60, what="the two lines")
        with psycopg.connect(told["database"]) as connection:
            assert connection.execute("SELECT current_database()").fetchone() == ("books",)
        assert AdminClient({"bootstrap.servers": told["brokers"], "log_level": 0}).list_topics(timeout=10).topics == {}
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0
    finally:
        process.kill()
        process.wait(10)
