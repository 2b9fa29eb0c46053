"""The operation types that a worker runs, each with what is compiled of its declaration once: rules, contract, patience."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from counterfoil.core.effect import DoneElsewhere, Effect, InLedger, InLedgerBatch
from counterfoil.core.operation_type import OperationType
from counterfoil.core.roads import TO_WORKERS, arrival_topic
from counterfoil.core.standing import Rules
from counterfoil.schemas.contract import Contract, contract_of
from counterfoil.streams.worker.progress import patience
from counterfoil.streams.worker.wanted import StillWanted

#: Operations that effects one by one share a transaction with, at most; more would hold locks for long.
ONE_BY_ONE = 100


@dataclass(frozen=True, slots=True)
class RunnableType:
    """One type at work."""

    name: str
    effect: Effect[Any] | InLedger[Any] | InLedgerBatch[Any]
    rules: Rules
    contract: Contract[Any]
    places: int  #: operations that may share one transaction; outside effects: irrelevant
    patience: float  #: seconds that a partition of it may stand still
    still_wanted: StillWanted | None = None  #: asked before each send


def runnable_types(
    operations: Iterable[OperationType[Any]],
    rules_of: Callable[[OperationType[Any]], Rules],
    *,
    progress_within: timedelta,
    batch: int,
    lock: Path | None,
) -> list[RunnableType]:
    """Compile what this worker runs; types whose effect is done elsewhere have no commands and are left out.

    Raises Refused for a contract that does not fit.
    """
    return [
        RunnableType(
            name=each.name,
            effect=effect,
            rules=(rules := rules_of(each)),
            contract=contract_of(each, lock),
            places=_places(effect, batch),
            patience=patience(progress_within.total_seconds(), rules.timeout.total_seconds()),
            still_wanted=each.still_wanted,
        )
        for each in operations
        if not isinstance(effect := each.effect, DoneElsewhere)
    ]


def topics_of(ledger: str, types: Iterable[RunnableType]) -> Mapping[str, tuple[str, str]]:
    """The topics that carry the commands of these types, each with its type and its last word."""
    words = TO_WORKERS.values()
    return {arrival_topic(ledger, each.name, word): (each.name, word) for each in types for word in words}


def _places(effect: Effect[Any] | InLedger[Any] | InLedgerBatch[Any], batch: int) -> int:
    match effect:
        case InLedgerBatch(size=size):
            return min(size, batch)
        case InLedger():
            return min(ONE_BY_ONE, batch)
        case _:
            return batch
