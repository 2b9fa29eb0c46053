"""The errors that cross the public API.

    CounterfoilError
    ├── DeclarationError     a declared value is wrong, found when the module is imported
    ├── Refused              enqueue or an act was refused, with a closed reason
    ├── Undecodable          bytes from a topic are not a value of their contract
    └── Outcome              what an effect raises
        ├── Uncertain        it may have been applied
        ├── Temporary        certainly not applied; later may differ
        └── Permanent        certainly not applied; repeating cannot help

Fields, not prose: no text here ever holds a payload, a key, a secret or another exception's text.
"""

import re
from datetime import timedelta

from counterfoil.core.reasons import Reason

__all__ = [
    "CODE",
    "CounterfoilError",
    "DeclarationError",
    "Outcome",
    "Permanent",
    "Refused",
    "Temporary",
    "Uncertain",
    "Undecodable",
]

CODE = re.compile(r"[a-z][a-z0-9_]{0,62}")  # a reason code is a label and a column: short, and never free text
LARGEST_RETRY_AFTER = timedelta(days=366)  # a sink's own "Retry-After: 99999999999" must not overflow a due time


class CounterfoilError(Exception):
    """Base of all errors that this library raises on purpose."""


class DeclarationError(CounterfoilError):
    """A declared value contradicts itself, its type or its sink; raised while the declaring module is imported.

    `subject` is the type, sink or value that is wrong, `mistake` what is wrong with it.
    """

    def __init__(self, subject: str, mistake: str) -> None:
        super().__init__(subject, mistake)
        self.subject = subject
        self.mistake = mistake

    def __str__(self) -> str:
        return f"{self.subject}: {self.mistake}"


class Refused(CounterfoilError):
    """Enqueue or an act was refused; nothing was written.

    `reason` is a member of a closed list, `path` the field that it is about (`lines[3].amount`), `subject` the operation type or
    the operation's id. The text has these and what to do next, never the value.
    """

    def __init__(self, reason: Reason, *, path: str | None = None, subject: str | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.path = path
        self.subject = subject

    def __str__(self) -> str:
        return _sentence(self.reason, self.path, self.subject)


class Undecodable(CounterfoilError):
    """Bytes from a topic are not a value of their contract. `path` is the field at which reading stopped, where one is known."""

    def __init__(self, reason: Reason, path: str | None = None) -> None:
        super().__init__(reason, path)
        self.reason = reason
        self.path = path

    def __str__(self) -> str:
        return _sentence(self.reason, self.path, None)


class Outcome(CounterfoilError):
    """Base of what an effect raises when it has no receipt to return."""


class Uncertain(Outcome):
    """It may have been applied. So is every exception that nobody sorted."""

    def __init__(self) -> None:
        super().__init__()

    def __str__(self) -> str:
        return "it may have been applied"


class Temporary(Outcome):
    """Certainly not applied; later may differ.

    `retry_after` is the sink's own wish, a timedelta. One below zero counts as none, one above 366 days as 366 days. What is no
    timedelta counts as none too: an error raised here would turn "certainly not applied" into a doubt.
    """

    def __init__(self, retry_after: timedelta | None = None) -> None:
        super().__init__(retry_after)
        wish: object = retry_after
        if not isinstance(wish, timedelta):
            retry_after = None
        if retry_after is not None:
            retry_after = None if retry_after < timedelta(0) else min(retry_after, LARGEST_RETRY_AFTER)
        self.retry_after = retry_after

    def __str__(self) -> str:
        return "certainly not applied; later may differ"


class Permanent(Outcome):
    """Certainly not applied, and repeating cannot help. `code` is one of `Errors.codes`: a label, so never free text."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code

    def __str__(self) -> str:
        # An exception's text given as a code by mistake must not reach a log through ours.
        code: object = self.code
        shown = code if isinstance(code, str) and CODE.fullmatch(code) else "a code that is not declared"
        return f"certainly not applied; repeating cannot help ({shown})"

    __repr__ = __str__


def _sentence(reason: Reason, path: str | None, subject: str | None) -> str:
    place = f" (at {path})" if path else ""
    return f"{f'{subject}: ' if subject else ''}{reason.sentence}{place}. {reason.advice}"
