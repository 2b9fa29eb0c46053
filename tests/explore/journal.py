"""The sink of the simulator: requests on their way, and what it applied, by real durations.

It keeps what it declares. Nothing of the operation's row is known here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from counterfoil.core.standing import Rules

START: Final = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass
class Request:
    """One attempt on its way: when it lands, if it does, and until when it may."""

    attempt: int
    revision: int
    generation: int
    lands_at: datetime | None
    until: datetime
    landed: bool = False
    refused: bool = False

    def pending(self, now: datetime) -> bool:
        """Whether it may still be applied."""
        return not self.landed and not self.refused and self.lands_at is not None and self.lands_at >= now


@dataclass
class Sink:
    """The journal, and the keys that it knows with the time of their first arrival."""

    rules: Rules
    effects: int = 0
    content: int = 0
    visible_at: datetime = START
    keys: dict[tuple[int, int], datetime] = field(default_factory=dict)

    def apply(self, revision: int, generation: int, now: datetime) -> None:
        """A request arrives."""
        rules = self.rules
        if rules.version_guard and self.effects:
            return
        if rules.by_nature_unique:
            if self.content == revision:
                return
        elif rules.keyed:
            first = self.keys.get((revision, generation))
            if first is not None and (rules.horizon is None or now - first < rules.horizon):
                return
            self.keys[revision, generation] = now
        self.effects += 1
        self.content = revision
        self.visible_at = now if rules.in_ledger else now + rules.read_lag
