"""Prints the reference page of events and reasons: `python -m tests.support.pages.words_page`.

Codes and sentences are the code's own; what an event means is the comment beside it.
"""

import inspect
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum

from counterfoil.core.acts import Action
from counterfoil.core.events import EventKind, LogEvent
from counterfoil.core.outcomes import AttemptOutcome
from counterfoil.core.reasons import Reason
from counterfoil.telemetry import counters

HEAD = """\
# Events and reasons

Made from the closed lists in the code (`make generate`); do not edit by hand. Codes are part of the interface: they stand in the
ledger, in the log, on the topics and in `--json`. A code that nothing in this release writes is reserved: its meaning is fixed.

An operation type may add codes of its own to the reasons (`Permanent(code)`, closed by `Errors.codes`). No event, reason or line
has a payload, a secret or an exception's text in it.
"""
LINES = """\
From every process alike, on standard error. Beside them: `foreign` is a line of a library, by its logger and place, without its
text, at most one in 30 seconds of each kind (`left_out` counts the others); `counted` is one counter at the end of a process."""
#: A member in the source, and the comment behind it.
LINE = re.compile(r"^    ([A-Z_]+) = [^#\n]*(?:#: (.*))?$", re.MULTILINE)

COUNTER = re.compile(r'^    "(\w+)",  # (.*?)(?: \(D\d+\))?$', re.MULTILINE)


def meanings(closed: type[Enum]) -> dict[str, str]:
    """What each member means, by its code: the comment beside it."""
    beside = dict(LINE.findall(inspect.getsource(closed)))
    return {str(one.value): beside.get(one.name, "") for one in closed}


def _table(head: str, rows: Iterable[Sequence[str]]) -> str:
    names = head.split(", ")
    lines = [names, ["---"] * len(names), *rows]
    return "".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |\n" for line in lines)


def _meanings(head: str, closed: Mapping[str, str]) -> str:
    return _table(f"{head}, meaning", [(f"`{code}`", meaning) for code, meaning in closed.items()])


def page() -> str:
    """The page."""
    sections = {
        "Events of an operation": (
            "Rows of the ledger, for ever; `counterfoil operations show` prints them in order.",
            _meanings("event", meanings(EventKind)),
        ),
        "Lines of the log": (
            LINES,
            _meanings("line", meanings(LogEvent)),
        ),
        "Counters": (
            "Of one process, by type, reason and state; printed as `counted` when it ends.",
            _meanings("counter", dict(COUNTER.findall(inspect.getsource(counters)))),
        ),
        "Outcomes of an attempt": ("One call of the effect.", _meanings("outcome", meanings(AttemptOutcome))),
        "Acts": (
            "What people do; kept with who (the database login), when, why and result, in a chain of its own.",
            _table("act, what was done", [(f"`{one.value}`", one.sentence) for one in Action]),
        ),
        "Reasons": (
            "Why something was refused, moved, kept or held.",
            _table("reason, what happened, what to do", [(f"`{one.value}`", one.sentence, one.advice) for one in Reason]),
        ),
    }
    return HEAD + "".join(f"\n## {title}\n\n{words}\n\n{table}" for title, (words, table) in sections.items())


if __name__ == "__main__":
    sys.stdout.write(page())
