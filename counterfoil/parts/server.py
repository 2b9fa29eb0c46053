"""One server process under its guard: started, stopped, killed, paused and continued by pid.

It ends with the last process that holds it, also when that process is killed. It never signals anything that it did not start.
"""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from counterfoil.parts import guard

POLL = 0.02  #: seconds between two looks at a condition
#: Guards that this process started and left: others may hold them, and a handle that is collected while they run is a warning.
_LEFT: list[subprocess.Popen[bytes]] = []


class PartMissing(RuntimeError):
    """A real part cannot be started on this machine; the text says what to install."""


class PartFailed(RuntimeError):
    """A real part ended, or did not come up in time; the text names its log file."""


def wait_until(condition: Callable[[], bool], *, within: float, what: str) -> None:
    """Look at the condition until it holds; PartFailed after `within` seconds."""
    deadline = time.monotonic() + within
    while not condition():
        if time.monotonic() > deadline:
            raise PartFailed(f"{what}: not within {within:g} s")
        time.sleep(POLL)


@dataclass
class Server:
    """A command that runs while somebody holds `folder/hold`."""

    name: str
    folder: Path
    stop_signal: signal.Signals
    user: str | None = None  #: the account it runs as, where ours is root and it refuses that
    remove_at_end: Path | None = None  #: what the guard deletes once the last holder is gone
    pid: int = 0
    _guard: subprocess.Popen[bytes] | None = field(default=None, repr=False)
    _hold: int | None = field(default=None, repr=False)

    @property
    def log(self) -> Path:
        """Where its standard output and error go."""
        return self.folder / f"{self.name}.log"

    @property
    def hold_path(self) -> Path:
        """The named pipe that every user of the server keeps open."""
        return self.folder / "hold"

    def start(self, command: Sequence[str], *, environment: dict[str, str] | None = None) -> None:
        """Start it under a new guard; returns when the process exists, not when it serves."""
        if not self.hold_path.exists():
            os.mkfifo(self.hold_path, 0o600)
        arguments = [str(self.hold_path), str(self.remove_at_end or ""), str(int(self.stop_signal)), self.user or ""]
        with self.log.open("ab") as log:
            self._guard = subprocess.Popen(
                [sys.executable, "-I", "-S", guard.__file__, *arguments, *command],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                cwd=self.folder,
                env=environment,
                start_new_session=True,
            )
        if self._hold is None:
            wait_until(self.join, within=10, what=f"guard of {self.name}")
        assert self._guard.stdout is not None
        with self._guard.stdout as said:
            line = said.readline()
        if not line:
            self._wait(10)
            raise PartFailed(f"{self.name} could not be started; see {self.log}")
        self.pid = int(line)

    def join(self) -> bool:
        """Hold it; False if no guard listens (any more)."""
        if self._hold is not None:
            return True
        try:
            self._hold = os.open(self.hold_path, os.O_WRONLY | os.O_NONBLOCK)
        except OSError as refused:
            if refused.errno in (errno.ENXIO, errno.ENOENT):
                return False
            raise
        return True

    def leave(self) -> None:
        """Hold it no longer; the last one to leave ends it."""
        if self._hold is not None:
            os.close(self._hold)
            self._hold = None
        if self._guard is not None:
            _LEFT.append(self._guard)

    def running(self) -> bool:
        """Whether the guard that this process started still guards it."""
        return self._guard is not None and self._guard.poll() is None

    def stop(self, signal_number: signal.Signals | None = None, *, within: float = 30) -> None:
        """Ask it to end, wait, and kill it when it does not; it can be started again."""
        self.signal(signal_number or self.stop_signal)
        try:
            self._wait(within)
        except PartFailed:
            self.kill()

    def kill(self) -> None:
        """End it with SIGKILL, as a crash would."""
        self.signal(signal.SIGKILL)
        self._wait(10)

    def pause(self) -> None:
        """SIGSTOP: it lives, and answers nothing."""
        self.signal(signal.SIGSTOP)

    def resume(self) -> None:
        """SIGCONT."""
        self.signal(signal.SIGCONT)

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal; nothing if it has ended."""
        if self.running():
            os.kill(self.pid, number)

    def _wait(self, within: float) -> None:
        if self._guard is None:
            return
        try:
            self._guard.wait(within)
        except subprocess.TimeoutExpired:
            raise PartFailed(f"{self.name} did not end within {within:g} s") from None
