"""What changes the world, and where: the effect's function with the sink, time-out, retries and sorted exceptions that it needs.

Never calls an effect. An effect in the ledger's own database has no sink and no time-out: it is never uncertain.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Generic, TypeVar

from counterfoil.core import checks
from counterfoil.core.errors import DeclarationError
from counterfoil.core.failures import Errors
from counterfoil.core.records import Answer, Attempt, Item, Receipt, minutes, seconds
from counterfoil.core.sink import Sink
from counterfoil.core.value import Declared

if TYPE_CHECKING:
    from sqlalchemy import Connection

__all__ = ["Backoff", "DoneElsewhere", "Effect", "InLedger", "InLedgerBatch", "Retry"]

P = TypeVar("P")


class Backoff(Declared):
    """Waits between tries: `first`, doubled up to `cap`, with jitter."""

    first: timedelta = seconds(2)  #: above zero
    cap: timedelta = minutes(15)  #: at least `first`

    def _check(self) -> None:
        checks.a_duration("Backoff", "first", self.first, above_zero=True)
        checks.a_duration("Backoff", "cap", self.cap, above_zero=True)
        if self.cap < self.first:
            raise DeclarationError("Backoff", "cap must be at least first")


class Retry(Declared):
    """How often and how fast a temporary failure is tried again."""

    max_tries: int = 8  #: the first call included; a crash counts; 1 to 1,000
    backoff: Backoff = Backoff()

    def _check(self) -> None:
        checks.a_whole_number("Retry", "max_tries", self.max_tries, 1, 1_000)
        checks.instance("Retry", "backoff", self.backoff, Backoff, "Backoff(...)")


class Effect(Declared, Generic[P]):
    """A call to a sink outside: sync on a bounded pool of threads, async on the loop."""

    call: Callable[[P, Attempt], Answer[Receipt]]
    sink: Sink
    timeout: timedelta  #: above zero; past it: uncertain; no default
    errors: Errors = Errors()
    retry: Retry = Retry()

    def _check(self) -> None:
        checks.a_function("Effect", "call", self.call, ("payload", "attempt"), may_be_async=True)
        subject = f"Effect({checks.label(self.call)})"
        checks.instance(subject, "sink", self.sink, Sink, "a Sink")
        checks.a_duration(subject, "timeout", self.timeout, above_zero=True)
        _check_outcomes(subject, self.errors, self.retry)

    @property
    def is_async(self) -> bool:
        """Whether calling it gives something to await."""
        return checks.is_async(self.call)


class InLedger(Declared, Generic[P]):
    """Rows in the ledger's database, in the transaction that saves the outcome: never uncertain. Never commits."""

    call: Callable[[Connection, P, Attempt], Receipt | None]
    errors: Errors = Errors()
    retry: Retry = Retry()

    def _check(self) -> None:
        checks.a_function("InLedger", "call", self.call, ("connection", "payload", "attempt"))
        _check_outcomes(f"InLedger({checks.label(self.call)})", self.errors, self.retry)


class InLedgerBatch(Declared, Generic[P]):
    """The same for many. Returning means all are applied; if it raises, the batch is halved."""

    call: Callable[[Connection, Sequence[Item[P]]], None]
    size: int = 500  #: operations a call, at most; 1 to 10,000
    errors: Errors = Errors()
    retry: Retry = Retry()

    def _check(self) -> None:
        checks.a_function("InLedgerBatch", "call", self.call, ("connection", "items"))
        subject = f"InLedgerBatch({checks.label(self.call)})"
        checks.a_whole_number(subject, "size", self.size, 1, 10_000)
        _check_outcomes(subject, self.errors, self.retry)


class DoneElsewhere(Declared):
    """Track only: another program acts and calls `record_outcome`."""

    sink: Sink
    outcome_within: timedelta  #: above zero; no outcome by then: probed
    codes: tuple[str, ...] = ()  #: of `Permanent`, as in `Errors`

    def _check(self) -> None:
        checks.instance("DoneElsewhere", "sink", self.sink, Sink, "a Sink")
        checks.a_duration("DoneElsewhere", "outcome_within", self.outcome_within, above_zero=True)
        checks.codes("DoneElsewhere", self.codes)

    @property
    def errors(self) -> Errors:
        """What the program that acts may record: its codes, and no exceptions."""
        return Errors(codes=self.codes)


def _check_outcomes(subject: str, errors: object, retry: object) -> None:
    checks.instance(subject, "errors", errors, Errors, "Errors(...)")
    checks.instance(subject, "retry", retry, Retry, "Retry(...)")
