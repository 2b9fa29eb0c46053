"""Fetches what the real parts need, so that no test waits for a download: `python -m counterfoil.parts`."""

from __future__ import annotations

import sys

from counterfoil.parts.jars import KAFKA_VERSION, java, kafka_jars
from counterfoil.parts.server import PartFailed, PartMissing


def main() -> int:
    """Exit 1, with what to install, when a part cannot be had."""
    try:
        java()
        kafka_jars()
    except (PartMissing, PartFailed) as missing:
        print(missing, file=sys.stderr)
        return 1
    print(f"Apache Kafka {KAFKA_VERSION}: ready")
    return 0


if __name__ == "__main__":
    sys.exit(main())
