"""Correcting a dead letter's payload: a patch of JSON on its newest revision becomes one more, checked as enqueue checks.

Identity, entity and version cannot change: then it would be another operation. Nothing is sent; a plan does that.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import Connection

from counterfoil.core import decisions
from counterfoil.core.acts import Action
from counterfoil.core.errors import Refused, Undecodable
from counterfoil.core.operation_type import Operations
from counterfoil.core.reasons import Reason
from counterfoil.core.standing import Rules
from counterfoil.core.texts import check_why
from counterfoil.enqueue import named
from counterfoil.ledger import acts, corrections, plans, standing
from counterfoil.ledger.decided import Facts
from counterfoil.ledger.moves import lock
from counterfoil.ledger.names import Ledger
from counterfoil.ledger.server import login
from counterfoil.schemas.contract import Contract
from counterfoil.schemas.contracts import Contracts
from counterfoil.schemas.plain import from_plain, patched, to_plain
from counterfoil.settings import Settings
from counterfoil.streams.dead_letters.showing import changed


class Corrected(NamedTuple):
    """The new revision, and what differs from the one before, masked."""

    revision: int
    changed: list[dict[str, Any]]


class Corrector:
    """For one ledger with the types that are installed here."""

    def __init__(self, ledger: Ledger, settings: Settings, operations: Operations) -> None:
        self._ledger = ledger
        self._operations = operations
        self._contracts = Contracts(operations, settings.registry_lock)
        self._settings = settings

    def correct(self, connection: Connection, operation_id: UUID, patch: Any, *, seen: int | None, reason: str) -> Corrected:
        """`seen` is the revision that the patch was made for; None: the newest. Raises Refused; nothing is written then."""
        check_why(str(operation_id), reason)
        number = standing.number_of(connection, operation_id)
        if number is None:
            raise Refused(Reason.UNKNOWN_OPERATION, subject=str(operation_id))
        locked = lock(connection, [number])
        stands, facts = locked.standings[number], locked.facts[number]
        rules = self._rules(facts.type)
        refused = decisions.edit(rules, stands, seen_revision=stands.revision if seen is None else seen, now=locked.now)
        if refused is not None:
            raise Refused(refused.reason, subject=str(operation_id))
        before = plans.current_values(connection, [number])[number]
        value = self._value(self._contracts.of(facts.type), facts, before, patch)
        if sha256(value).digest() == sha256(before).digest():
            raise Refused(Reason.NO_DIFFERENCE, subject=str(operation_id))
        difference = changed(self._contracts, facts.type, before, value)
        told = {"revision": stands.revision + 1, "changed": [one["path"] for one in difference]}
        by = {"actor": login(connection), "why": reason}
        if not corrections.correct(connection, self._ledger, stands, value, told | by):
            raise Refused(Reason.SOMEBODY_WAS_FIRST, subject=str(operation_id))
        acts.record(connection, self._ledger, Action.FIX, str(operation_id), reason, "fixed", number=number, detail=told)
        return Corrected(stands.revision + 1, difference)

    def _rules(self, type_name: str) -> Rules:
        declared = self._operations.find(type_name)
        if declared is None:
            raise Refused(Reason.UNKNOWN_TYPE, subject=type_name)
        return self._settings.rules_of(declared)

    def _value(self, contract: Contract[Any], facts: Facts, before: bytes, patch: Any) -> bytes:
        """The framed bytes of the corrected payload. A payload that cannot be read any more is replaced by a whole document."""
        try:
            plain = to_plain(contract.shape, contract.decode(before), {})
        except Undecodable:
            plain = {}
        payload = from_plain(contract.shape, patched(plain, patch))
        value = contract.encode(payload)
        declared = self._operations.find(facts.type)
        assert declared is not None
        if named(self._ledger, declared, payload) != (facts.operation_id, facts.entity, facts.version):
            raise Refused(Reason.IDENTITY_CHANGED, subject=str(facts.operation_id))
        return value
