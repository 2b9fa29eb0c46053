"""Gives every contract that has none a line in the lock, with ids of its own until a registry is configured.

The same types and the same file give the same ids in every run; an id is never reused. Never asks a registry, and never
changes a line that is there, unless it is told to renew a contract that changed.
"""

import os
from pathlib import Path

from counterfoil.core.errors import Refused
from counterfoil.core.operation_type import Operations
from counterfoil.core.reasons import Reason
from counterfoil.schemas.definition import Definition, read_definition
from counterfoil.schemas.fit import fitted
from counterfoil.schemas.lock import FILE, RegistryLock, find_lock, read_lock, write_lock
from counterfoil.schemas.state_record import state_definition


def lock_place(operations: Operations, override: Path | None = None) -> Path:
    """Where the lock is, or is to be: the setting's, the nearest above the contracts, or the folder that holds them all."""
    if override is not None:
        return override
    contracts = [each.contract for each in operations.types]
    if not contracts:
        raise Refused(Reason.CONTRACT_MISSING, subject=FILE)
    for each in contracts:
        try:
            return find_lock(each)
        except Refused:
            continue
    return Path(os.path.commonpath([each.parent for each in contracts])) / FILE


def ensure_lock(operations: Operations, override: Path | None = None, *, renew: bool = False) -> tuple[Path, tuple[str, ...]]:
    """The lock's path and the subjects that were added or renewed, the system's own included; writes only where there are any.

    Refused where a payload does not fit its contract, or a contract changed and `renew` is not given.
    """
    path = lock_place(operations, override)
    before = read_lock(path) if path.is_file() else RegistryLock()
    wanted: dict[str, Definition] = {}
    for each in operations.types:
        definition = read_definition(each.contract)
        fitted(definition.shape, each.payload)
        known = wanted.setdefault(definition.subject, definition)
        if known.sha256 != definition.sha256:
            raise Refused(Reason.CONTRACT_MISMATCH, subject=f"{definition.subject}: two files, two contents")
    wanted[state_definition().subject] = state_definition()
    after = before
    for _, definition in sorted(wanted.items()):
        after = after.with_local(definition, renew=renew)
    if after != before:
        write_lock(after, path)
    return path, tuple(name for name, entry in after.entries.items() if before.entries.get(name) != entry)
