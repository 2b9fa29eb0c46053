"""How a sink stands, put together from its declaration, the ledger and the pauses: for a screen, and for programs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from counterfoil.core.operation_type import Operations
from counterfoil.core.sink import Limits, in_force

if TYPE_CHECKING:
    from counterfoil.ledger.pauses import Pause
    from counterfoil.ledger.sinks import Standing


@dataclass(frozen=True)
class Line:
    """One sink, or one type that is held to less than its sink."""

    name: str
    type: str  #: "": the sink itself
    types: tuple[str, ...]  #: whose effects go there
    declared: Limits | None  #: None: no installed type has it
    standing: Standing | None  #: None: no worker ever asked for it
    pause: Pause | None

    @property
    def limits(self) -> tuple[int | None, float | None]:
        """Calls in flight and calls a second, as they hold."""
        chosen = (self.standing.concurrency, self.standing.per_second) if self.standing else (None, None)
        if self.declared is None:
            return chosen
        return in_force(*chosen, self.declared.concurrency, self.declared.per_second)

    @property
    def set_by_hand(self) -> bool:
        """Whether a person's limits hold in place of the declared ones."""
        return self.standing is not None and self.standing.concurrency is not None

    @property
    def breaker(self) -> str:
        return self.standing.position.value if self.standing else "closed"

    @property
    def in_flight(self) -> int:
        return self.standing.in_flight if self.standing else 0

    @property
    def waiting(self) -> int:
        """Calls that workers would make if they could."""
        return self.standing.wanted - self.standing.in_flight if self.standing else 0

    @property
    def open_since(self) -> datetime | None:
        return self.standing.opened_at if self.standing else None

    def as_data(self) -> dict[str, Any]:
        """For `--json`."""
        concurrency, per_second = self.limits
        declared = self.declared
        one = self.standing
        return {
            "name": self.name,
            "type": self.type or None,
            "types": self.types,
            "breaker": {
                "position": self.breaker,
                "failures": one.failures if one else 0,
                "opened_at": self.open_since,
                "until": one.until if one else None,
            },
            "in_flight": self.in_flight,
            "waiting": self.waiting,
            "workers": one.workers if one else 0,
            "concurrency": concurrency,
            "per_second": per_second,
            "set_by_hand": self.set_by_hand,
            "declared": {"concurrency": declared.concurrency, "per_second": declared.per_second} if declared else None,
            "paused": as_data(self.pause) if self.pause else None,
        }


def as_data(pause: Pause) -> dict[str, Any]:
    """A pause for `--json`."""
    return pause._asdict()


def lines(operations: Operations, standings: Iterable[Standing], pauses: Iterable[Pause]) -> list[Line]:
    """Every sink that is declared or known to the ledger, by name; a type that is held to less comes after its sink."""
    declared: dict[tuple[str, str], tuple[Limits, list[str]]] = {}
    for one in operations:
        if one.sink is None:
            continue
        whole = one.sink.declared
        declared.setdefault((whole.name, ""), (whole.limits, []))[1].append(one.name)
        if one.sink.limits != whole.limits:
            declared[whole.name, one.name] = one.sink.limits, [one.name]
    known = {(one.name, one.type): one for one in standings}
    paused = {one.name: one for one in pauses if one.kind == "sink"}
    return [
        Line(
            name,
            type_,
            tuple(declared[name, type_][1]) if (name, type_) in declared else (),
            declared[name, type_][0] if (name, type_) in declared else None,
            known.get((name, type_)),
            paused.get(name),
        )
        for name, type_ in sorted(declared.keys() | known.keys())
    ]
