"""registry.lock: which schema id and version each contract has, and the hash of the contract that they stand for.

Read by callers, workers and relays; written by hand, or by `counterfoil init` with local ids until a registry is configured.
Nothing here asks a registry, and an id is never given twice, not even after its subject is gone.
"""

import os
import tomllib
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from counterfoil.core.errors import Refused
from counterfoil.core.operation_type import Operations
from counterfoil.core.reasons import Reason
from counterfoil.schemas.definition import Definition, read_definition
from counterfoil.schemas.fit import fitted
from counterfoil.schemas.frame import LARGEST_ID
from counterfoil.schemas.system import state_definition

FILE = "registry.lock"
_NEXT = "next-id"  # a hyphen: no subject can have this name
_HEAD = """\
# Which schema id each contract has. Commit this file. Written by `counterfoil init` and by the schema workflow; a contract
# whose sha256 differs from its line is refused until it is registered or restored.
"""


@dataclass(frozen=True, slots=True)
class Locked:
    """One subject's line."""

    version: int
    id: int
    sha256: str  #: hex digest of the contract's normal form
    earlier: tuple[int, ...] = ()  #: ids of older versions, known but not read


@dataclass(frozen=True, slots=True)
class RegistryLock:
    entries: dict[str, Locked] = field(default_factory=dict)
    next_id: int = 1

    def entry(self, definition: Definition) -> Locked:
        """The line of this contract; Refused where there is none, or where it stands for other text."""
        found = self.entries.get(definition.subject)
        if found is None:
            raise Refused(Reason.CONTRACT_MISSING, subject=definition.subject)
        if found.sha256 != definition.sha256:
            raise Refused(Reason.CONTRACT_MISMATCH, subject=definition.subject)
        return found

    def knows(self, schema_id: int) -> bool:
        return any(schema_id == each.id or schema_id in each.earlier for each in self.entries.values())

    def with_local(self, definition: Definition, *, renew: bool = False) -> "RegistryLock":
        """With a line for this contract: unchanged where it has one, else the next id that was never used.

        A contract that changed is refused, or with `renew` takes the next version and a new id.
        """
        found = self.entries.get(definition.subject)
        if found and (found.sha256 == definition.sha256 or not renew):
            self.entry(definition)
            return self
        earlier = (*found.earlier, found.id) if found else ()
        made = Locked(found.version + 1 if found else 1, self.next_id, definition.sha256, earlier)
        return RegistryLock({**self.entries, definition.subject: made}, self.next_id + 1)


def shared_lock(operations: Operations, override: Path | None = None) -> Path:
    """The one lock of all these types, whether it exists or is still to be written.

    The setting's, else the nearest `registry.lock` above the contracts, else one in the folder that holds them all. Refused
    where the contracts would not find the same one: then only the setting `registry_lock` can say which is meant.
    """
    contracts = [each.contract for each in operations.types]
    if override is not None or not contracts:
        return override or Path(FILE).absolute()
    found = {_nearest(each) for each in contracts}
    if len(found) > 1:
        raise Refused(Reason.CONTRACT_MISMATCH, subject=f"the contracts do not share one {FILE}: set registry_lock")
    return found.pop() or Path(os.path.commonpath([each.parent for each in contracts])) / FILE


def ensure_lock(operations: Operations, override: Path | None = None, *, renew: bool = False) -> list[Path]:
    """Gives every contract that has none a line with the next local id, the system's own included; the locks as they stand.

    The same types and the same file give the same ids in every run. Refused where a payload does not fit its contract, or where
    a contract changed and `renew` is not given.
    """
    path = shared_lock(operations, override)
    before = read_lock(path) if path.is_file() else RegistryLock()
    wanted = {state_definition().subject: state_definition()}
    for each in operations.types:
        definition = read_definition(each.contract)
        fitted(definition.shape, each.payload)
        if wanted.setdefault(definition.subject, definition).sha256 != definition.sha256:
            raise Refused(Reason.CONTRACT_MISMATCH, subject=f"{definition.subject}: two files, two contents")
    after = before
    for _, definition in sorted(wanted.items()):
        after = after.with_local(definition, renew=renew)
    if after != before:
        write_lock(after, path)
    return [path]


def find_lock(contract: Path, override: Path | None = None) -> Path:
    """The lock of a contract: the setting's, else the nearest `registry.lock` in its folder or above; Refused without one."""
    if override is not None:
        if not override.is_file():
            raise Refused(Reason.CONTRACT_MISSING, subject=override.name)
        return override
    if (found := _nearest(contract)) is None:
        raise Refused(Reason.CONTRACT_MISSING, subject=FILE)
    return found


def read_lock(path: Path) -> RegistryLock:
    """Refused where it is missing, is no TOML, or has a line that cannot be right (an id twice, a hash of another length)."""
    try:
        document = tomllib.loads(path.read_text("utf-8"))
    except OSError:
        document, reason = None, Reason.CONTRACT_MISSING
    except (tomllib.TOMLDecodeError, UnicodeDecodeError):
        document, reason = None, Reason.CONTRACT_MISMATCH
    if document is None:
        raise Refused(reason, subject=f"{path.name}: cannot be read")
    tables = {name: each for name, each in document.items() if isinstance(each, dict)}
    entries = {name: _locked(name, each) for name, each in tables.items()}
    used = [number for each in entries.values() for number in (each.id, *each.earlier)]
    if len(set(used)) != len(used):
        raise Refused(Reason.CONTRACT_MISMATCH, subject=f"{path.name}: an id stands twice")
    next_id = document.get(_NEXT, 1)
    if type(next_id) is not int:
        raise Refused(Reason.CONTRACT_MISMATCH, subject=f"{path.name}: not a lock file")
    return RegistryLock(entries, max([next_id, *(number + 1 for number in used)]))


def write_lock(lock: RegistryLock, path: Path) -> None:
    """Whole or not at all: a reader never sees half a file."""
    lines = [_HEAD, f"{_NEXT} = {lock.next_id}"]
    for subject, each in sorted(lock.entries.items()):
        lines += ["", f'["{subject}"]', f"version = {each.version}", f"id = {each.id}", f'sha256 = "{each.sha256}"']
        if each.earlier:
            lines.append(f"earlier = [{', '.join(map(str, each.earlier))}]")
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    beside.write_text("\n".join(lines) + "\n", "utf-8")
    os.replace(beside, path)


def _nearest(contract: Path) -> Path | None:
    return next((each for each in (folder / FILE for folder in contract.parents) if each.is_file()), None)


def _locked(subject: str, table: dict[str, Any]) -> Locked:
    digest, earlier = table.get("sha256"), table.get("earlier", [])
    numbers: list[Any] = [table.get("version"), table.get("id"), *(earlier if isinstance(earlier, list) else [None])]
    if (
        all(type(number) is int and 0 < number <= LARGEST_ID for number in numbers)
        and isinstance(digest, str)
        and len(digest) == 64
        and set(digest) <= set("0123456789abcdef")
    ):
        return replace(Locked(numbers[0], numbers[1], digest), earlier=tuple(numbers[2:]))
    raise Refused(Reason.CONTRACT_MISMATCH, subject=f"{subject}: its line in the lock cannot be right")
