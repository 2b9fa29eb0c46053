"""Which operations of one entity may run, and what makes two calls one operation.

Never computes an identity: the functions are kept here, and called by enqueue.
"""

from collections.abc import Callable
from enum import StrEnum
from typing import Any, Generic, TypeVar

from counterfoil.core import checks
from counterfoil.core.records import Key
from counterfoil.core.value import Declared

__all__ = ["LatestWins", "Order", "Ordering", "Strict", "Unordered", "ordering_of"]

P = TypeVar("P")


class LatestWins(Declared, Generic[P]):
    """A newer version replaces an older one. Identity is (entity, version)."""

    entity: Callable[[P], Key]
    version: Callable[[P], int]  #: within 64 bits; it only grows

    def _check(self) -> None:
        checks.a_function("LatestWins", "entity", self.entity, ("payload",))
        checks.a_function("LatestWins", "version", self.version, ("payload",))


class Strict(Declared, Generic[P]):
    """Each waits for the one before; one that stands still holds its entity."""

    identity: Callable[[P], Key]
    entity: Callable[[P], Key]

    def _check(self) -> None:
        checks.a_function("Strict", "identity", self.identity, ("payload",))
        checks.a_function("Strict", "entity", self.entity, ("payload",))


class Unordered(Declared, Generic[P]):
    """Operations of one entity know nothing of each other."""

    identity: Callable[[P], Key]
    entity: Callable[[P], Key] | None = None  #: default: the identity

    def _check(self) -> None:
        checks.a_function("Unordered", "identity", self.identity, ("payload",))
        if self.entity is not None:
            checks.a_function("Unordered", "entity", self.entity, ("payload",))


Order = LatestWins[P] | Strict[P] | Unordered[P]


class Ordering(StrEnum):
    """Which of the three a type has, where its functions are of no use."""

    UNORDERED = "unordered"
    LATEST_WINS = "latest_wins"
    STRICT = "strict"


def ordering_of(order: Order[Any]) -> Ordering:
    """The kind of a declared order."""
    if isinstance(order, Strict):
        return Ordering.STRICT
    return Ordering.LATEST_WINS if isinstance(order, LatestWins) else Ordering.UNORDERED
