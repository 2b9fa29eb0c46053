"""Named places at which a test can kill, stop or fail the process. In production a call does nothing and costs one empty call.

COUNTERFOIL_FAILPOINTS="relay.after_ack=kill,worker.after_settle=stop@3" arms them before the import: `kill` is SIGKILL to this
process, `stop` is SIGSTOP, `raise` raises FailpointHit, `hold` keeps this one thread there until its file is gone; @N means the
Nth time the place is passed, once. In the folder COUNTERFOIL_FAILPOINTS_DIR each one that is hit leaves a file of its name, with
the process id in it, before it acts. This module never decides anything by itself and must never be armed by code.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path

ACTIONS = ("kill", "stop", "raise", "hold", "pass")  #: `pass` only leaves the file: the place was reached
LONGEST_HOLD = 60.0  #: seconds after which a held thread goes on, whatever became of the test

#: Every place, in the order in which an operation passes them, and where it stands. A test holds this list against the code.
PLACES: Mapping[str, str] = {
    "enqueue.before_write": "a call of enqueue is checked and encoded; nothing is written",
    "enqueue.after_write": "its rows are written in the caller's transaction, which is not committed",
    "relay.before_read": "the relay asks the outbox what waits",
    "relay.before_produce": "rows are read; none of them is handed to the producer",
    "relay.after_produce": "rows are handed to the producer; no report of them has come",
    "relay.after_ack": "the broker has acknowledged rows; their note is not begun",
    "relay.before_note_commit": "their note is written and their outbox rows are deleted, not committed",
    "relay.after_note": "the note is committed",
    "relay.before_refuse_commit": "a row that can never be sent is moved aside and its operation settled, not committed",
    "worker.after_ingest": "a batch came from Kafka and is in hand; no agent has it",
    "worker.decoding": "a batch is marked as being decoded; none of it is",
    "worker.decoding_alone": "a suspected record is marked alone; it is not decoded",
    "worker.before_admit": "records are decoded; the ledger was not asked",
    "worker.before_admit_commit": "attempts are counted, not committed: no effect may be called yet",
    "worker.after_admit": "attempts are counted and committed; no effect is called",
    "worker.before_keep": "a record that cannot be handled is found; nothing of it is saved",
    "worker.before_keep_commit": "a record that cannot be handled is kept raw with its dead letter, not committed",
    "worker.after_keep": "it is kept raw and committed; its offset may be passed",
    "worker.before_effect": "the last check before the first byte is done",
    "worker.after_effect": "the effect has answered; nothing of the answer is saved",
    "worker.before_settle_commit": "the answer is written, not committed",
    "dead_letter.before_commit": "a quarantined operation's cause and dead letter are written, not committed",
    "worker.after_settle": "the answer is committed; its record is not finished",
    "worker.before_commit": "offsets are about to be committed to the group",
    "worker.after_commit": "the broker has answered an offset commit",
    "worker.before_acknowledged_commit": "the note of an offset commit is written, not committed",
    "due.before_leases_commit": "running operations whose lease is over are moved on, not committed",
    "due.before_resend_commit": "uncertain attempts are made ready to be repeated under their key, not committed",
    "due.before_send_commit": "command records of what is due are in the outbox, not committed",
    "held.before_release_commit": "held records that a worker can do now are let go, not committed",
    "held.before_end_commit": "holds past their deadline are ended and their operations set aside, not committed",
    "due.after_sweep": "a look of the sweepers is committed",
    "replay.before_commit": "dead letters of a plan are let run again or given up, not committed",
    "replay.after_commit": "they are, and the plan's next ones are not begun",
}


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
        if action == "hold":
            self._hold(name)
        elif action != "pass":
            self._act(action)

    def _hold(self, name: str) -> None:
        """Until somebody removes the file; without a folder nobody could, so it goes on."""
        until = time.monotonic() + LONGEST_HOLD
        while self._folder is not None and (self._folder / name).exists() and time.monotonic() < until:
            threading.Event().wait(0.01)

    @staticmethod
    def _leave_file(folder: Path, name: str) -> None:
        whole = folder / f"{name}.writing"
        whole.write_text(str(os.getpid()))
        whole.rename(folder / name)


def _planned(entry: str) -> tuple[str, tuple[str, int]]:
    name, equals, rest = entry.partition("=")
    action, at, nth = rest.partition("@")
    if not equals or action not in ACTIONS or (at and not (nth.isdigit() and int(nth) > 0)):
        raise FailpointsMisspelt(f"a failpoint is name={'|'.join(ACTIONS)}[@N], not {entry!r}")
    if name not in PLACES:
        raise FailpointsMisspelt(f"no place is called {name!r}; counterfoil.failpoints.PLACES has them all")
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
