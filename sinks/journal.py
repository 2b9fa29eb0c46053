"""An outside system's own list of the requests it received and what became of each: JSON lines, only ever appended.

It is what a checker believes instead of the ledger. A line is one `write` under a lock, so several processes may share a
journal and a SIGKILL leaves whole lines. It must never be read by the system that it judges.
"""

import fcntl
import hashlib
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

import orjson


class Fate(StrEnum):
    """What became of a request."""

    APPLIED = "applied"  #: it changed the content, or would have if the content had not been the same
    REPLAYED = "replayed"  #: its key was known: the first answer again
    REFUSED = "refused"  #: answered, and certainly not applied
    DROPPED = "dropped"  #: cut off before it was applied
    HELD = "held"  #: received; it may land later, in a line of its own with the same request id


@dataclass(frozen=True, slots=True)
class Entry:
    """One line: a request and its fate."""

    request: str  #: the outside system's own id of the request
    fate: Fate
    entity: str
    digest: str  #: sha256 of the fields as sorted JSON
    at: float  #: the outside system's clock, seconds since 1970
    key: str | None = None
    operation: str | None = None
    version: int | None = None
    row: str | None = None  #: id of what was written
    fields: Mapping[str, Any] | None = None
    changed_content: bool = False
    behaviour: str = "normal"  #: the planned behaviour that the request met

    @property
    def applied(self) -> bool:
        return self.fate is Fate.APPLIED

    @property
    def subject(self) -> str:
        """What effects are counted by: the operation, else the key, else the entity."""
        return self.operation or self.key or self.entity


def content_digest(fields: Mapping[str, Any] | None) -> str:
    """The digest of `fields` whatever their order."""
    return hashlib.sha256(orjson.dumps(fields, option=orjson.OPT_SORT_KEYS)).hexdigest()


class Journal:
    """The journal in one file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def append(self, entry: Entry) -> None:
        """One line, in the file before this returns."""
        with self._open() as descriptor:
            _write(descriptor, entry)

    @contextmanager
    def alone(self) -> Iterator[Callable[[Entry], None]]:
        """Hold the journal and append with what is given, for a system that must write before and after it acts."""
        with self._open() as descriptor:
            yield lambda entry: _write(descriptor, entry)

    def entries(self) -> list[Entry]:
        """All of it, oldest first; a journal that nobody wrote to is empty."""
        if not self.path.exists():
            return []
        # A last line without its end is still being written.
        return [_entry(line) for line in self.path.read_bytes().splitlines(keepends=True) if line.endswith(b"\n")]

    @contextmanager
    def _open(self) -> Iterator[int]:
        descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)  # ends with the descriptor, and so with the process
            yield descriptor
        finally:
            os.close(descriptor)


def effects_per_operation(entries: Iterable[Entry]) -> Counter[str]:
    """How often each operation changed the content (S1: at most once)."""
    return Counter(entry.subject for entry in entries if entry.changed_content)


def doubled(entries: Iterable[Entry]) -> int:
    """Entries that changed the content, beyond one an operation."""
    return sum(effects - 1 for effects in effects_per_operation(entries).values())


def _write(descriptor: int, entry: Entry) -> None:
    os.write(descriptor, orjson.dumps(asdict(entry)) + b"\n")


def _entry(line: bytes) -> Entry:
    read = orjson.loads(line)
    return Entry(**{**read, "fate": Fate(read["fate"])})
