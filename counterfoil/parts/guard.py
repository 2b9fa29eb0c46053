"""Runs one server for as long as somebody holds it, and stops it when the last holder is gone, however that holder ended.

It is a program of its own, started as `python -I -S guard.py HOLD REMOVE SIGNAL USER COMMAND...`, and never imports the package.
HOLD is a named pipe: each process that needs the server keeps it open for writing, so that its end, SIGKILL included, is an
end of file here. The guard never looks for processes by name: it signals its own child only.
"""

from __future__ import annotations

import ctypes
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable

GRACE = 5.0  #: seconds between the stop signal and SIGKILL
RENDEZVOUS = 30  #: seconds within which the first holder must appear


def die_with_parent() -> Callable[[], None] | None:
    """What a child runs before exec so that not even a killed guard leaves it behind; Linux only."""
    if not sys.platform.startswith("linux"):
        return None
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    return lambda: prctl(1, signal.SIGKILL)


def run(hold: str, remove: str, stop_signal: int, user: str, command: list[str]) -> int:
    """Start the command, say its pid on stdout, wait for its end or for the last holder's; returns the command's exit code."""
    readable, writable = os.pipe()
    os.set_blocking(writable, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(writable, warn_on_full_buffer=False)
    signal.alarm(RENDEZVOUS)
    holders = os.open(hold, os.O_RDONLY)
    signal.alarm(0)
    identity = {"user": user, "group": _group(user), "extra_groups": []} if user else {}
    child = subprocess.Popen(  # type: ignore[call-overload]
        command,
        stdin=subprocess.DEVNULL,
        preexec_fn=die_with_parent(),  # noqa: PLW1509 - this program has one thread
        start_new_session=True,
        **identity,
    )
    sys.stdout.write(f"{child.pid}\n")
    sys.stdout.flush()
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    while child.poll() is None:
        ready, _, _ = select.select([holders, readable], [], [])
        if readable in ready:
            os.read(readable, 4096)
        if holders in ready and not os.read(holders, 4096):
            os.close(holders)
            _end(child, stop_signal)
            if remove:
                shutil.rmtree(remove, ignore_errors=True)
    return int(child.returncode)


def _group(user: str) -> int:
    import pwd

    return pwd.getpwnam(user).pw_gid


def _end(child: subprocess.Popen[bytes], stop_signal: int) -> None:
    deadline = time.monotonic() + GRACE
    child.send_signal(stop_signal)
    while child.poll() is None and time.monotonic() < deadline:
        time.sleep(0.02)
    if child.poll() is None:
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()


if __name__ == "__main__":
    sys.exit(run(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4], sys.argv[5:]))
