"""What `check` found out about one thing: a line with what to do."""

from dataclasses import dataclass
from enum import StrEnum

from counterfoil.cli.exits import Exit


class Mark(StrEnum):
    """How a thing that was looked at stands."""

    OK = "ok"
    NOTE = "note"  #: works, but somebody should know
    WRONG = "wrong"
    UNREACHABLE = "unreachable"
    SKIPPED = "skipped"  #: not looked at, because something before it is wrong


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of `check`. `what` holds names and counts, never a value of a setting or an exception's text."""

    name: str
    mark: Mark
    what: str
    todo: str | None = None


def exit_of(findings: list[Finding]) -> Exit:
    """Unreachable wins over wrong: what cannot be reached was not judged."""
    marks = {finding.mark for finding in findings}
    if Mark.UNREACHABLE in marks:
        return Exit.UNREACHABLE
    return Exit.REFUSED if Mark.WRONG in marks else Exit.OK
