"""The contracts of all types of a ledger, under one lock, each compiled at first use."""

from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import Any

from counterfoil.core.errors import Undecodable
from counterfoil.core.operation_type import Operations, OperationType
from counterfoil.core.reasons import Reason
from counterfoil.schemas.contract import Contract, contract_of
from counterfoil.schemas.lock import shared_lock


class Contracts:
    """Thread safe. `lock` is the setting `registry_lock`."""

    def __init__(self, operations: Operations, lock: Path | None = None) -> None:
        self._operations = operations
        self._types: dict[str, OperationType[Any]] = {each.name: each for each in operations.types}
        self._override = lock
        self._made: dict[str, Contract[Any]] = {}
        self._guard = Lock()

    def of(self, type: str) -> Contract[Any]:  # noqa: A002  # the word of the vocabulary
        """The contract of the type with this name; Undecodable (unknown_type) where none is installed, Refused where wrong."""
        if (made := self._made.get(type)) is not None:
            return made
        if (declared := self._types.get(type)) is None:
            raise Undecodable(Reason.UNKNOWN_TYPE)
        with self._guard:
            if type not in self._made:
                self._made[type] = contract_of(declared, self._lock)
            return self._made[type]

    @cached_property
    def _lock(self) -> Path:
        return shared_lock(self._operations, self._override)
