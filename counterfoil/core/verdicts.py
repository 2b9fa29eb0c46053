"""What probes of a sink came to, and what the reconciler may do about it. Data only: the remedies are `decisions.verdicts`.

Never compares a field and never asks a sink: whoever probes hands in what was seen, and when it was asked.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import TYPE_CHECKING, Any

from counterfoil.core.policy import Remedy

if TYPE_CHECKING:
    from collections.abc import Collection

    from counterfoil.core.policy import Policy

__all__ = ["Mandate", "Seen", "Verdict"]


class Verdict(Enum):
    """What the probes of one operation say."""

    CORRECT = "correct"  #: the sink shows the fields and the version that were expected
    MISSING = "missing"  #: agreeing probes past the absence wait found nothing
    DIVERGENT = "divergent"  #: there is an effect, and it is not the expected one
    AMBIGUOUS = "ambiguous"  #: no answer to rely on: several, unknown for too long, or the deadline is over
    NOT_APPLICABLE = "not_applicable"  #: the sink shows a newer version, and it is ours


@dataclass(frozen=True, slots=True)
class Seen:
    """A verdict, and the facts that a remedy or an act rests on; where nobody can probe, a person's written finding."""

    verdict: Verdict
    sequence: int  #: of the operation when the probe was asked: on any other the verdict is void (S9)
    asked_at: datetime  #: the ledger's time before the last agreeing probe was sent
    receipt: bool = False  #: some attempt's receipt is saved, or kept as evidence: it speaks against "missing"
    newer: bool = False  #: the ledger has a newer version of the entity
    passed: bool = False  #: the head of the strictly ordered entity has moved past the operation


@dataclass(frozen=True, slots=True)
class Mandate:
    """What the reconciler may do for a type by itself: first its `Policy`, then what the ledger's settings say now."""

    requeue: bool = False  #: what is missing may be sent again
    compensate: bool = False  #: what diverges may be undone by a linked operation
    hard_to_repeat: bool = False  #: as money: never sent again by itself

    @classmethod
    def of(cls, policy: Policy[Any], enforced: Collection[Remedy] | None = None) -> Mandate:
        """Compile a policy; `enforced` are the remedies in force now, None: as the policy itself says."""
        now = policy.enforce if enforced is None else enforced
        return cls(
            requeue=policy.missing is Remedy.REQUEUE and Remedy.REQUEUE in now,
            compensate=policy.divergent is Remedy.COMPENSATE and Remedy.COMPENSATE in now,
            hard_to_repeat=policy.risk.hard_to_repeat,
        )
