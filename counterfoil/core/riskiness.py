"""How risky a declared type is, for the order of an inventory: which one a person should look at first.

Reads declarations only, and decides nothing about an operation.
"""

from __future__ import annotations

from typing import Any, Final

from counterfoil.core.effect import DoneElsewhere
from counterfoil.core.operation_type import OperationType
from counterfoil.core.policy import Remedy
from counterfoil.core.proof import RECEIPT, ProbeBatch, Proof
from counterfoil.core.sink import NotAtAll

__all__ = ["by_risk", "enforced", "how_proved", "risk_of"]

#: The worst first.
RISKS: Final = ("money", "hard to repeat", "a repeat is a second effect", "nothing can confirm it", "another program acts")


def risk_of(of: OperationType[Any]) -> tuple[str, ...]:
    """What makes it risky, the worst first; empty where a repeat is harmless and somebody can look."""
    there = (
        of.policy.risk.money,
        of.policy.risk.hard_to_repeat,
        of.sink is not None and isinstance(of.sink.idempotency, NotAtAll),
        of.proof is None and not of.in_ledger,
        isinstance(of.effect, DoneElsewhere),
    )
    return tuple(name for name, true in zip(RISKS, there, strict=True) if true)


def by_risk(of: OperationType[Any]) -> tuple[object, ...]:
    """A key for sorting: riskiest first, then by name. A worse risk outweighs all lesser ones together."""
    mine = risk_of(of)
    return (*(name not in mine for name in RISKS), of.in_ledger, of.name)


def how_proved(of: OperationType[Any]) -> str:
    """How its effect is known to exist, in a word or two."""
    if of.in_ledger:
        return "the ledger's own commit"
    if isinstance(of.proof, Proof):
        return "probe, batched" if isinstance(of.proof.probe, ProbeBatch) else "probe"
    return "receipt" if of.proof is RECEIPT else "none"


def enforced(of: OperationType[Any]) -> tuple[str, ...]:
    """The remedies that its declaration asks to be applied without a person; empty: it observes."""
    return tuple(one.value for one in (Remedy.REQUEUE, Remedy.COMPENSATE) if one in of.policy.enforce)
