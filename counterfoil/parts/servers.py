"""A real PostgreSQL and a real Kafka for trying things out, until Ctrl-C: `python -m counterfoil.parts.servers`.

It prints their two lines of `counterfoil.toml` and nothing else on standard output. What is in the servers is gone when they end.
"""

from __future__ import annotations

import signal
import sys
from contextlib import suppress

from counterfoil.parts.kafka import kafka
from counterfoil.parts.postgres import postgres
from counterfoil.parts.server import PartFailed, PartMissing

DATABASE = "books"


def main() -> int:
    """Exit 0 after Ctrl-C or SIGTERM; 1, with what to install, when a part cannot be had."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with postgres() as database, kafka() as broker, suppress(KeyboardInterrupt):
            print(f'database = "{database.create_database(DATABASE)}"\nbrokers = "{broker.bootstrap}"', flush=True)
            print("PostgreSQL and Kafka run until Ctrl-C", file=sys.stderr)
            while True:
                signal.pause()
    except (PartMissing, PartFailed) as missing:
        print(missing, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
