"""What may follow a verdict: the remedies of a type, its risk and its fuse.

Never decides: these are first values, the ledger's settings win, and `enforce` empty means that the type only observes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from enum import Enum
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

from counterfoil.core import checks
from counterfoil.core.errors import DeclarationError
from counterfoil.core.records import Found
from counterfoil.core.value import Declared

if TYPE_CHECKING:
    from counterfoil.core.operation_type import Request

__all__ = ["Fuse", "Policy", "Remedy", "Risk"]

P = TypeVar("P")


class Remedy(Enum):
    """What is done about a verdict."""

    CONFIRM = "confirm"
    REQUEUE = "requeue"
    COMPENSATE = "compensate"
    REVIEW = "review"
    CLOSE = "close"


class Risk(Declared):
    """Why a person must decide; both refuse an automatic repeat."""

    money: bool = False
    hard_to_repeat: bool = False

    def _check(self) -> None:
        checks.yes_or_no("Risk", "money", self.money)
        checks.yes_or_no("Risk", "hard_to_repeat", self.hard_to_repeat)


class Fuse(Declared):
    """Past either, the type falls back to observe."""

    not_correct: float = 0.05  #: share of verdicts, 0 to 1
    requeues_an_hour: int = 100  #: 0 to 1,000,000

    def _check(self) -> None:
        checks.a_share("Fuse", "not_correct", self.not_correct)
        checks.a_whole_number("Fuse", "requeues_an_hour", self.requeues_an_hour, 0, 1_000_000)


class Policy(Declared, Generic[P]):
    """First values. `enforce` empty: a new type observes; confirm is always applied."""

    missing: Literal[Remedy.REQUEUE, Remedy.REVIEW] = Remedy.REVIEW
    divergent: Literal[Remedy.COMPENSATE, Remedy.REVIEW] = Remedy.REVIEW
    compensate: Callable[[P, Found[Any]], Request[Any] | None] | None = None  #: returns None: a person decides
    enforce: Collection[Literal[Remedy.REQUEUE, Remedy.COMPENSATE]] = ()
    risk: Risk = Risk()
    fuse: Fuse = Fuse()

    def _check(self) -> None:
        # Compared by identity of the member: a plain "requeue" would slip through every later comparison and do nothing.
        if not any(self.missing is remedy for remedy in (Remedy.REQUEUE, Remedy.REVIEW)):
            raise DeclarationError("Policy", "missing must be Remedy.REQUEUE or Remedy.REVIEW")
        if not any(self.divergent is remedy for remedy in (Remedy.COMPENSATE, Remedy.REVIEW)):
            raise DeclarationError("Policy", "divergent must be Remedy.COMPENSATE or Remedy.REVIEW")
        if self.compensate is not None:
            checks.a_function("Policy", "compensate", self.compensate, ("payload", "found"))
        elif self.divergent is Remedy.COMPENSATE:
            raise DeclarationError("Policy", "divergent is COMPENSATE without compensate=")
        self._check_enforce()
        checks.instance("Policy", "risk", self.risk, Risk, "Risk(...)")
        checks.instance("Policy", "fuse", self.fuse, Fuse, "Fuse(...)")

    def _check_enforce(self) -> None:
        checks.instance("Policy", "enforce", self.enforce, (tuple, list, set, frozenset), "a collection of remedies")
        for remedy in self.enforce:
            if remedy is not Remedy.REQUEUE and remedy is not Remedy.COMPENSATE:
                raise DeclarationError("Policy", "enforce takes Remedy.REQUEUE and Remedy.COMPENSATE only")
        # Believed to be enforced and never done is the worst of both.
        if Remedy.REQUEUE in self.enforce and self.missing is not Remedy.REQUEUE:
            raise DeclarationError("Policy", "enforce has REQUEUE, but missing is not REQUEUE")
        if Remedy.COMPENSATE in self.enforce and self.divergent is not Remedy.COMPENSATE:
            raise DeclarationError("Policy", "enforce has COMPENSATE, but divergent is not COMPENSATE")
        object.__setattr__(self, "enforce", frozenset(self.enforce))  # a list handed in could change later
