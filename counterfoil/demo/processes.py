"""The relay and the workers as real processes: `python -m counterfoil relay|worker`, each with its own log, ended by pid."""

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import counterfoil

STOP_WITHIN = 20.0  # seconds, for SIGTERM


class Died(RuntimeError):
    """A process ended that should have run on; the text names it, its exit code and its log."""


class Process:
    """One command of ours in a process of its own."""

    def __init__(self, name: str, command: list[str], folder: Path, settings: Mapping[str, str]) -> None:
        self.name, self.log = name, folder / f"{name}.log"
        self.killed = False
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "counterfoil", *command],
                cwd=folder,  # no counterfoil.toml of the user's own
                env=environment(settings),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    def must_run(self) -> None:
        """Raises Died for a process that ended by itself."""
        code = self._process.poll()
        if code is not None and not self.killed:
            raise Died(f"the {self.name} ended with exit code {code}: see {self.log}")

    def pause(self) -> None:
        """SIGSTOP."""
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """SIGCONT."""
        self._process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        """SIGKILL, as by the kernel when memory runs out."""
        self.killed = True
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()

    def stop(self) -> int:
        """SIGTERM; answers the exit code, -9 where it did not end in time and was killed."""
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(STOP_WITHIN)
            except subprocess.TimeoutExpired:
                self._process.kill()
        return self._process.wait()


def run(command: list[str], folder: Path, settings: Mapping[str, str]) -> None:
    """A command that ends; raises Died where it fails."""
    process = Process(command[0], command, folder, settings)
    code = process._process.wait()
    if code != 0:
        raise Died(f"counterfoil {' '.join(command)} ended with exit code {code}: see {process.log}")


def environment(settings: Mapping[str, str]) -> dict[str, str]:
    """The variables of a process: none of the user's own COUNTERFOIL_ settings may reach it."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("COUNTERFOIL_")}
    ours = str(Path(counterfoil.__file__).parent.parent)
    path = os.pathsep.join([ours, *filter(None, [kept.get("PYTHONPATH")])])
    return {**kept, "PYTHONPATH": path, **settings}
