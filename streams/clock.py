"""The clock of leases: it goes on while the process or the machine is suspended, so that nobody wakes up and still holds one."""

import time

_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def boottime() -> float:
    """Seconds of a clock that counts suspension, where the system has one."""
    return time.clock_gettime(_CLOCK)
