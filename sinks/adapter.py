"""What a ready-made sink offers: the four members that are handed to Effect and Proof. It decides nothing about states."""

from typing import Protocol, TypeVar

from counterfoil.core.records import Answer, Attempt, Expected, Observation, Receipt, Target
from counterfoil.core.sink import Sink

P = TypeVar("P")
S = TypeVar("S")


class Adapter(Protocol[P, S]):
    """A ready-made sink: `Effect(adapter.effect, adapter.sink, …)` and `Proof(adapter.expected, adapter.probe)`.

    `effect` raises Temporary, Permanent or Uncertain and nothing else that it could have sorted; `probe` only reads, and
    answers Unknown wherever it cannot tell.
    """

    @property
    def sink(self) -> Sink:
        """What the outside system promises."""
        ...

    def effect(self, payload: P, attempt: Attempt, /) -> Answer[Receipt]:
        """Change the world once, under `attempt.key` or at `attempt.result_key`."""
        ...

    def expected(self, payload: P, /) -> Expected[S]:
        """What must be observable afterwards, from the payload alone."""
        ...

    def probe(self, target: Target[P], /) -> Answer[Observation[S]]:
        """What is there now."""
        ...
