"""What strikes a process at a failpoint, and which cells cannot be."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import NamedTuple

from counterfoil.failpoints import PLACES


class Fault(StrEnum):
    """The columns of the matrix. Each value is its name on the screen."""

    KILL = "kill"  #: SIGKILL
    STOP = "stop"  #: SIGSTOP until its lease is over and somebody else has its work, then SIGCONT
    RAISE = "raise"  #: an exception at that line
    CUT = "cut"  #: every connection to the database is reset there
    COMMIT_LOST = "commit-"  #: its next COMMIT does not reach the database, and the connection is gone
    COMMIT_UNANSWERED = "commit+"  #: its next COMMIT is applied, and the connection is gone before the answer
    BROKER = "broker"  #: the broker is killed and started again while it stands there

    @property
    def action(self) -> str:
        """What the failpoint does."""
        return self.value if self in (Fault.KILL, Fault.STOP, Fault.RAISE) else "hold"


class Cell(NamedTuple):
    """One failpoint with one fault."""

    place: str
    fault: Fault

    @property
    def part(self) -> str:
        """Which process is armed: caller, relay, worker or person (who replays a plan of dead letters)."""
        room = self.place.partition(".")[0]
        return {"enqueue": "caller", "relay": "relay", "replay": "person"}.get(room, "worker")

    def __str__(self) -> str:
        return f"{self.place} × {self.fault}"


#: Cells that cannot be, with the reason.
NEVER = {
    ("enqueue", Fault.BROKER): "a caller never talks to the broker",
    ("replay", Fault.BROKER): "a replay never talks to the broker",
    **{("held", fault): "both workers read every contract: tests/acceptance/test_held_records.py kills there" for fault in Fault},
}
#: What `make test` runs of the matrix: cells of most steps, and each fault but the broker's, which other tests share.
SAMPLE = (
    Cell("enqueue.after_write", Fault.COMMIT_UNANSWERED),
    Cell("relay.after_ack", Fault.STOP),
    Cell("worker.before_admit_commit", Fault.COMMIT_LOST),
    Cell("worker.after_effect", Fault.KILL),
    Cell("worker.before_settle_commit", Fault.CUT),
    Cell("dead_letter.before_commit", Fault.RAISE),
    Cell("replay.before_commit", Fault.KILL),
    Cell("worker.before_commit", Fault.KILL),
)


def why_never(cell: Cell) -> str | None:
    """Why the cell cannot be reached; None: it can."""
    return NEVER.get((cell.place.partition(".")[0], cell.fault))


def all_cells() -> Iterator[Cell]:
    """The whole matrix, row by row."""
    for place in PLACES:
        for fault in Fault:
            yield Cell(place, fault)
