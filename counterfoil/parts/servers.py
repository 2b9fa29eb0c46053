"""A real PostgreSQL and a real Kafka for trying things out, until Ctrl-C: `python -m counterfoil.parts.servers`.

It prints their two lines of `counterfoil.toml` and nothing else on standard output, or puts them into the file after `--write`.
What is in the servers is gone when they end.
"""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from counterfoil.parts import addresses
from counterfoil.parts.kafka import kafka
from counterfoil.parts.postgres import postgres
from counterfoil.parts.server import PartFailed, PartMissing

DATABASE = "books"


def _arguments(given: Sequence[str]) -> Path | None:
    parser = argparse.ArgumentParser(
        prog="python -m counterfoil.parts.servers",
        description="A real PostgreSQL and a real Kafka for trying things out, until Ctrl-C; what is in them is gone then.",
    )
    what = "settings file to write `database` and `brokers` into: made if absent, everything else in it is kept"
    parser.add_argument("--write", type=Path, metavar="FILE", help=what)
    file: Path | None = parser.parse_args(given).write
    return file


def main(arguments: Sequence[str]) -> int:
    """Exit 0 after Ctrl-C or SIGTERM; 1, with what to do, when a part cannot be had or the file not be written."""
    file = _arguments(arguments)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with suppress(KeyboardInterrupt), postgres() as database, kafka() as broker:
            there = {"database": database.create_database(DATABASE), "brokers": broker.bootstrap}
            if file is None:
                print(addresses.told(there), end="", flush=True)
            else:
                addresses.write(file, there)
                print(f"{file}: `database` and `brokers` are written", file=sys.stderr)
            print("PostgreSQL and Kafka run until Ctrl-C, and forget everything then", file=sys.stderr, flush=True)
            while True:
                signal.pause()
    except (PartMissing, PartFailed) as missing:
        print(missing, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
