"""A payload as a person is shown it: decoded with the installed contract where that reads it, what the contract tags masked.

Bytes that cannot be decoded are shown to nobody here; raw bytes are an act of their own.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from counterfoil.core.errors import Refused, Undecodable
from counterfoil.core.reasons import Reason
from counterfoil.schemas.contracts import Contracts
from counterfoil.schemas.plain import differences, to_plain


class Shown(NamedTuple):
    """Fields, those that are tagged masked; or why they cannot be shown."""

    fields: Any | None
    why_not: Reason | None


def masked(contracts: Contracts, type_name: str, value: bytes | None) -> Shown:
    """One value of a type."""
    try:
        contract = contracts.of(type_name)
        return Shown(to_plain(contract.shape, contract.decode(value), contract.tags), None)
    except (Undecodable, Refused) as error:
        return Shown(None, error.reason)


def changed(contracts: Contracts, type_name: str, before: bytes, after: bytes) -> list[dict[str, Any]]:
    """What differs between two revisions, by path; of what is tagged, only that it does. Empty where one cannot be read."""
    try:
        contract = contracts.of(type_name)
        old, new = contract.decode(before), contract.decode(after)
    except (Undecodable, Refused):
        return []
    hidden = [to_plain(contract.shape, one, contract.tags) for one in (old, new)]
    whole = [to_plain(contract.shape, one, {}) for one in (old, new)]
    told = {path: (then, now) for path, then, now in differences(*hidden)}
    found = []
    for path, _, _ in differences(*whole):
        then, now = told.get(path, ("[masked]", "[masked]"))
        found.append({"path": path, "before": then, "after": now})
    return found
