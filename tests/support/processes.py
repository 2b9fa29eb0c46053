"""The command line in processes of its own: run to the end, or started, killed, stopped and continued, with armed failpoints."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.planted import Planted
from tests.support.waiting import eventually

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = Path(sys.executable).with_name("counterfoil")


@dataclass(frozen=True)
class Ended:
    """A command that has ended."""

    code: int
    stdout: str
    stderr: str


@dataclass
class Started:
    """A process of ours; what it prints is in `log`."""

    process: subprocess.Popen[bytes]
    log: Path
    failpoints: Path

    @property
    def pid(self) -> int:
        """Its process id."""
        return self.process.pid

    @property
    def output(self) -> str:
        """All that it has printed."""
        return self.log.read_text(errors="replace")

    def running(self) -> bool:
        """Whether it has not ended."""
        return self.process.poll() is None

    def wait(self, within: float = 30) -> int:
        """Its exit code; negative for the signal that ended it."""
        eventually(lambda: not self.running(), within=within, what=f"end of {self.log.stem}")
        return int(self.process.returncode)

    def reached(self, failpoint: str, within: float = 30) -> None:
        """Wait until it has hit the failpoint."""
        eventually((self.failpoints / failpoint).exists, within=within, what=f"failpoint {failpoint} in {self.log.stem}")

    def printed(self, text: str, within: float = 30) -> None:
        """Wait until the text is in its output."""
        eventually(lambda: text in self.output, within=within, what=f"{text!r} from {self.log.stem}")

    def send(self, number: signal.Signals) -> None:
        """Send it a signal, unless it has ended."""
        if self.running():
            os.kill(self.pid, number)

    def kill(self) -> None:
        """SIGKILL, and wait for its end."""
        self.send(signal.SIGKILL)
        self.process.wait(10)

    def terminate(self, within: float = 30) -> int:
        """SIGTERM, and its exit code."""
        self.send(signal.SIGTERM)
        return self.wait(within)

    def stop(self) -> None:
        """SIGSTOP."""
        self.send(signal.SIGSTOP)

    def resume(self) -> None:
        """SIGCONT."""
        self.send(signal.SIGCONT)


@dataclass
class CommandLine:
    """Runs `counterfoil` with the settings of one test; nothing that it starts outlives the test."""

    folder: Path
    planted: Planted
    settings: dict[str, str] = field(default_factory=dict)  #: by field name, as in COUNTERFOIL_<NAME>
    started: list[Started] = field(default_factory=list)
    program: Sequence[str] = (str(PROGRAM),)  #: what stands before the arguments

    def run(self, *arguments: str, within: float = 60, code: int | None = 0, **settings: str) -> Ended:
        """Run a command to its end; fails if it exits with another code than `code` (None: any)."""
        done = subprocess.run(
            [*self.program, *arguments],
            capture_output=True,
            check=False,
            cwd=self.folder,
            env=self._environment(settings),
            stdin=subprocess.DEVNULL,
            timeout=within,
        )
        ended = Ended(done.returncode, done.stdout.decode(), done.stderr.decode())
        self.planted.saw(f"the output of {arguments[0] if arguments else 'counterfoil'}", [ended.stdout, ended.stderr])
        assert code is None or ended.code == code, f"{arguments}: exit {ended.code}\n{ended.stdout}\n{ended.stderr}"
        return ended

    def start(
        self, *arguments: str, failpoints: str = "", environment: Mapping[str, str] | None = None, **settings: str
    ) -> Started:
        """Start a command; `failpoints` is what COUNTERFOIL_FAILPOINTS says."""
        label = f"{len(self.started)}-{next((each for each in arguments if not each.startswith('-')), 'counterfoil')}"
        hits = self.folder / f"{label}-failpoints"
        hits.mkdir()
        log = self.folder / f"{label}.log"
        armed = {"COUNTERFOIL_FAILPOINTS": failpoints, "COUNTERFOIL_FAILPOINTS_DIR": str(hits)} if failpoints else {}
        with log.open("wb") as output:
            process = subprocess.Popen(
                [*self.program, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=self.folder,
                env={**self._environment(settings), **armed, **(environment or {})},
                start_new_session=True,
            )
        self.planted.watch(log, f"the output of {label}")
        self.started.append(Started(process, log, hits))
        return self.started[-1]

    def end_all(self) -> None:
        """Kill what still runs, by its pid."""
        for each in self.started:
            each.kill()

    def _environment(self, settings: Mapping[str, str]) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("COUNTERFOIL_")}
        ours = {f"COUNTERFOIL_{name.upper()}": value for name, value in {**self.settings, **settings}.items()}
        path = os.pathsep.join(filter(None, (str(self.folder), str(ROOT), kept.get("PYTHONPATH"))))
        return {**kept, **ours, "PYTHONPATH": path, "NO_COLOR": "1", "COLUMNS": "200", "PYTHONUNBUFFERED": "1"}
