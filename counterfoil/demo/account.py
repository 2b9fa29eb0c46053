"""The account at the end: what the callers know, what the outside systems' journals say, and how the ledger stands.

Pure: it compares three lists that know nothing of each other. It believes the ledger only about what is still open.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from counterfoil.core.states import EXCEPTIONS, State
from counterfoil.sinks.journal import Entry, doubled, effects_per_operation

#: States that say "the effect exists".
DONE = frozenset({State.SUCCEEDED, State.CONFIRMED, State.COMPENSATING, State.COMPENSATED})


@dataclass(frozen=True, slots=True)
class Stands:
    """How one operation stands in the ledger."""

    state: State
    due: bool  #: it has a due time
    closed: bool


@dataclass(frozen=True)
class TypeAccount:
    """One operation type."""

    accepted: int
    states: Mapping[str, int]
    waiting_for_confirmation: int  #: its effect is not proved yet: awaiting_confirmation, and succeeded while it is not final
    effects: int  #: operations of this type in a journal


@dataclass(frozen=True)
class Account:
    """All types together."""

    types: Mapping[str, TypeAccount]
    lost: Sequence[str]  #: operation ids
    doubled: int
    unwanted: Sequence[str]  #: of transactions that were rolled back, and yet found in the ledger or in a journal
    rolled_back: int = 0
    behaviours: Mapping[str, int] = field(default_factory=dict)  #: requests that met each planned behaviour

    @property
    def accepted(self) -> int:
        return sum(one.accepted for one in self.types.values())

    @property
    def balanced(self) -> bool:
        return not self.lost and not self.doubled and not self.unwanted


def account(
    accepted: Mapping[str, str], rolled_back: Mapping[str, str], journal: Sequence[Entry], standing: Mapping[str, Stands]
) -> Account:
    """`accepted` and `rolled_back` are the callers' own: the type of each operation by its id."""
    effects = effects_per_operation(journal)
    types = {
        name: _of_type([one for one, type_ in accepted.items() if type_ == name], effects, standing)
        for name in sorted(set(accepted.values()))
    }
    return Account(
        types=types,
        lost=[one for one in accepted if _is_lost(one, effects, standing)],
        doubled=doubled(journal),
        unwanted=[one for one in rolled_back if one in effects or one in standing],
        rolled_back=len(rolled_back),
        behaviours=dict(Counter(entry.behaviour for entry in journal)),
    )


def _of_type(ids: Sequence[str], effects: Mapping[str, int], standing: Mapping[str, Stands]) -> TypeAccount:
    stands = [standing[one] for one in ids if one in standing]
    return TypeAccount(
        accepted=len(ids),
        states=dict(Counter(one.state.value for one in stands)),
        waiting_for_confirmation=sum(
            one.state is State.AWAITING_CONFIRMATION or (one.state is State.SUCCEEDED and not one.closed) for one in stands
        ),
        effects=sum(one in effects for one in ids),
    )


def _is_lost(operation: str, effects: Mapping[str, int], standing: Mapping[str, Stands]) -> bool:
    """In no journal, and neither open with a due time nor on the exceptions list. "Done" without an effect is lost too."""
    if operation in effects:
        return False
    stands = standing.get(operation)
    if stands is None or stands.state in DONE:
        return True
    return stands.state not in EXCEPTIONS and not stands.due
