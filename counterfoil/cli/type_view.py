"""The inventory: one line for each operation type, declared or only known to the ledger; for a screen, programs and a wiki."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from counterfoil.cli.counted import Asked
from counterfoil.cli.policy_facts import idempotency
from counterfoil.core import riskiness
from counterfoil.core.operation_type import Operations, OperationType

if TYPE_CHECKING:
    from counterfoil.ledger.tallying import Unfinished

HEADS = ("type", "owner", "sink", "risk", "probe", "idempotency", "mode", "open", "in review", "texts")


@dataclass(frozen=True)
class Line:
    """One type."""

    name: str
    declared: OperationType[Any] | None  #: None: the ledger has open operations of it, and nothing declares it
    counted: Unfinished | None  #: None: the ledger was not reached

    def cells(self) -> tuple[str, ...]:
        """As the columns of `HEADS`."""
        of = self.declared
        counts = (str(self.counted.open), str(self.counted.in_review)) if self.counted else ("?", "?")
        if of is None:
            return (self.name, "not declared", *("?",) * 5, *counts, "")
        sink = of.sink.name if of.sink else "the ledger"
        risk = ", ".join(riskiness.risk_of(of)) or "-"
        missing = f"missing: {', '.join(of.texts.missing)}" if of.texts.missing else "all there"
        return (
            *(of.name, of.owner, sink, risk, riskiness.how_proved(of), idempotency(of), mode(of)),
            *counts,
            missing,
        )

    def as_data(self) -> dict[str, Any]:
        """For `--json`."""
        of, counted = self.declared, self.counted
        told: dict[str, Any] = {"name": self.name, "declared": of is not None}
        if of is not None:
            told |= {
                "owner": of.owner,
                "sink": of.sink.name if of.sink else None,
                "risk": riskiness.risk_of(of),
                "probe": riskiness.how_proved(of),
                "idempotency": idempotency(of),
                "mode": "enforce" if riskiness.enforced(of) else "observe",
                "enforce": riskiness.enforced(of),
                "texts_missing": of.texts.missing,
            }
        names = ("open", "in_review", "quarantined")
        return told | {name: getattr(counted, name) if counted else None for name in names}


def mode(of: OperationType[Any]) -> str:
    """What the declaration asks of the reconciler, in words."""
    enforced = riskiness.enforced(of)
    return f"enforce {', '.join(enforced)}" if enforced else "observe"


def lines(operations: Operations, asked: Asked) -> list[Line]:
    """Riskiest first; then what the ledger has open and nobody declares, by name."""
    declared = [Line(of.name, of, asked.counted(of.name)) for of in sorted(operations, key=riskiness.by_risk)]
    known = {one.name for one in declared}
    strange = sorted(name for name in asked.unfinished if name not in known)
    return declared + [Line(name, None, asked.counted(name)) for name in strange]


def markdown(found: Sequence[Line]) -> Iterator[str]:
    """The lines of a table in Markdown."""
    yield f"| {' | '.join(HEADS)} |"
    yield f"|{' --- |' * len(HEADS)}"
    for line in found:
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line.cells())} |"
