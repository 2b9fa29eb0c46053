"""What a person chooses dead letters by, and what becomes of each. Pure data: a filter that is empty means everything."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID


@dataclass(frozen=True, slots=True)
class Chosen:
    """A filter: of each field any of its values, all fields together. Instants are aware."""

    types: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()
    fingerprint: str | None = None
    since: datetime | None = None  #: quarantined at or after
    until: datetime | None = None  #: quarantined before
    entity: str | None = None  #: exactly, as the ledger writes it
    ids: tuple[UUID, ...] = ()  #: of operations, or causes of raw records

    @property
    def empty(self) -> bool:
        """Whether it would choose everything."""
        return self == Chosen()

    def told(self) -> dict[str, Any]:
        """As an act and a plan keep it. An entity may name a person, so only that one was given is said."""
        said: dict[str, Any] = {
            "types": list(self.types),
            "reasons": list(self.reasons),
            "fingerprint": self.fingerprint,
            "since": self.since.isoformat() if self.since else None,
            "until": self.until.isoformat() if self.until else None,
            "one_entity": True if self.entity is not None else None,
            "ids": [str(one) for one in self.ids[:100]],
            "more_ids": max(len(self.ids) - 100, 0),
        }
        return {name: value for name, value in said.items() if value}
