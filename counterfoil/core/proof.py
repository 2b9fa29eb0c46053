"""How it is known that an effect exists: what must be seen, and the probe that looks.

Never probes. `RECEIPT` says that the sink's answer is the proof; None, written down, that nothing can confirm it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from enum import Enum
from typing import Generic, Literal, TypeVar

from counterfoil.core import checks
from counterfoil.core.errors import DeclarationError
from counterfoil.core.records import Answer, Expected, Found, Observation, OperationId, Target, hours, minutes
from counterfoil.core.value import Declared

__all__ = ["RECEIPT", "Confirm", "ProbeBatch", "Proof", "ProofOf", "ReceiptOnly"]

P = TypeVar("P")
S = TypeVar("S")


class Confirm(Declared):
    """When a type probes, and how long it waits for a proof."""

    share: float = 1.0  #: of succeeded operations to probe, 0 to 1; for the rest succeeded is final
    window: timedelta = minutes(2)  #: after the effect, before the first probe
    probes: int = 2  #: agreeing answers, past the absence wait, that make "absent" missing; 1 to 100
    deadline: timedelta = hours(24)  #: by then a person sees it; longer than `window`

    def _check(self) -> None:
        checks.a_share("Confirm", "share", self.share)
        checks.a_duration("Confirm", "window", self.window)
        checks.a_whole_number("Confirm", "probes", self.probes, 1, 100)
        checks.a_duration("Confirm", "deadline", self.deadline, above_zero=True)
        if self.deadline <= self.window:
            raise DeclarationError("Confirm", "deadline must be longer than window")


class ProbeBatch(Declared, Generic[P, S]):
    """A probe for many targets at once; reads only. A target that is left out is Unknown."""

    call: Callable[[Sequence[Target[P]]], Answer[Mapping[OperationId, Observation[S]]]]
    size: int = 100  #: targets a call, at most; 1 to 10,000

    def _check(self) -> None:
        checks.a_function("ProbeBatch", "call", self.call, ("targets",), may_be_async=True)
        checks.a_whole_number(f"ProbeBatch({checks.label(self.call)})", "size", self.size, 1, 10_000)


class ProofOf(Declared, Generic[P]):
    """A Proof with its shape hidden (`Proof[R, Any]` would switch off the check that both shapes agree)."""


class Proof(ProofOf[P], Generic[P, S]):
    """One shape S for both functions: a misspelt field is a type error, not 40,000 divergences."""

    expected: Callable[[P], Expected[S]]
    probe: Callable[[Target[P]], Answer[Observation[S]]] | ProbeBatch[P, S]  #: reads only
    confirm: Confirm = Confirm()
    business_key: Callable[[P], str] | None = None  #: default: the entity as text
    inventory: Callable[[str | None], Iterator[tuple[str, Found[S]]]] | None = None
    """For sweep: by business key, from after the one given; all of them, or raise."""

    def _check(self) -> None:
        checks.a_function("Proof", "expected", self.expected, ("payload",))
        subject = f"Proof({checks.label(self.expected)})"
        if not isinstance(self.probe, ProbeBatch):
            checks.a_function(subject, "probe", self.probe, ("target",), may_be_async=True)
        checks.instance(subject, "confirm", self.confirm, Confirm, "Confirm(...)")
        if self.business_key is not None:
            checks.a_function(subject, "business_key", self.business_key, ("payload",))
        if self.inventory is not None:
            checks.a_function(subject, "inventory", self.inventory, ("after",))


class ReceiptOnly(Enum):
    """The one value `RECEIPT`."""

    RECEIPT = "receipt"


RECEIPT: Literal[ReceiptOnly.RECEIPT] = ReceiptOnly.RECEIPT  # no probe; the receipt confirms
