"""Named places at which a test can kill, stop or fail the process. In production a call does nothing and costs one empty call.

COUNTERFOIL_FAILPOINTS="relay.after_ack=kill,worker.after_settle=stop@3" arms them before the import: `kill` is SIGKILL to this
process, `stop` is SIGSTOP, `raise` raises FailpointHit; @N means the Nth time the place is passed, once. In the folder
COUNTERFOIL_FAILPOINTS_DIR each one that is hit leaves a file of its name, with the process id in it, before it acts.
This module never decides anything by itself and must never be armed by code.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Mapping
from pathlib import Path

ACTIONS = ("kill", "stop", "raise", "pass")  #: `pass` only leaves the file: the place was reached


class FailpointHit(RuntimeError):
    """The place was armed with `raise`."""


class FailpointsMisspelt(ValueError):
    """COUNTERFOIL_FAILPOINTS cannot be read; a test that arms nothing would pass for the wrong reason."""


class Armed:
    """What a process has armed: each place with its action and the pass on which it acts."""

    def __init__(self, text: str, folder: Path | None, act: Callable[[str], None]) -> None:
        self._plan: dict[str, tuple[str, int]] = dict(map(_planned, filter(None, text.replace(" ", "").split(","))))
        self._left = {name: nth for name, (_, nth) in self._plan.items()}
        self._folder, self._act, self._lock = folder, act, threading.Lock()

    def __call__(self, name: str) -> None:
        """Pass the place `name`: act if this is the armed pass."""
        if name not in self._plan:
            return
        with self._lock:
            self._left[name] -= 1
            if self._left[name] != 0:
                return
        if self._folder is not None:
            self._leave_file(self._folder, name)
        action = self._plan[name][0]
        if action == "raise":
            raise FailpointHit(name)
        if action != "pass":
            self._act(action)

    @staticmethod
    def _leave_file(folder: Path, name: str) -> None:
        whole = folder / f"{name}.writing"
        whole.write_text(str(os.getpid()))
        whole.rename(folder / name)


def _planned(entry: str) -> tuple[str, tuple[str, int]]:
    name, equals, rest = entry.partition("=")
    action, at, nth = rest.partition("@")
    if not name or not equals or action not in ACTIONS or (at and not (nth.isdigit() and int(nth) > 0)):
        raise FailpointsMisspelt(f"a failpoint is name=kill|stop|raise|pass[@N], not {entry!r}")
    return name, (action, int(nth) if at else 1)


def signal_self(action: str) -> None:
    """`kill` or `stop` this very process; `stop` returns when somebody continues it."""
    os.kill(os.getpid(), signal.SIGKILL if action == "kill" else signal.SIGSTOP)


def _nothing(name: str) -> None:
    """No place is armed."""


def chosen(environment: Mapping[str, str]) -> Callable[[str], None]:
    """The function that `failpoint` is in a process with this environment."""
    text = environment.get("COUNTERFOIL_FAILPOINTS", "")
    folder = environment.get("COUNTERFOIL_FAILPOINTS_DIR")
    return Armed(text, Path(folder) if folder else None, signal_self) if text else _nothing


failpoint: Callable[[str], None] = chosen(os.environ)
