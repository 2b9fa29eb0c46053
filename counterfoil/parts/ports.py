"""Free ports on loopback, outside the range that the kernel gives to outgoing connections.

A server that is stopped and started again keeps its port: from the outgoing range, a client that reconnects meanwhile could be
given that very port, or be connected to itself.
"""

from __future__ import annotations

import random
import socket

LOOPBACK = "127.0.0.1"
LOWEST, HIGHEST = 15_000, 31_999  #: below Linux's default outgoing range (32768 to 60999)


def free_ports(count: int) -> list[int]:
    """That many different ports that nobody listens on now."""
    found: set[int] = set()
    for _ in range(2_000):
        if len(found) == count:
            return sorted(found)
        port = random.randint(LOWEST, HIGHEST)
        with socket.socket() as probe:
            try:
                probe.bind((LOOPBACK, port))
            except OSError:
                continue
        found.add(port)
    raise OSError("no free port on loopback")
