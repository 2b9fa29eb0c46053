"""A sink of files in a folder: one operation, one path, written whole or not at all.

The bytes go to a name beside the path, are synced, and take their place by one rename; a probe reads size and checksum of what
is there. It never follows a path out of its folder and never leaves a half-written file under the final name.
"""

import hashlib
import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Generic, TypeVar

from counterfoil.core.errors import Permanent, Temporary, Uncertain
from counterfoil.core.records import Absent, Asked, Attempt, Digest, Expected, Found, Observation, Receipt, Target, Unknown
from counterfoil.core.sink import Sink

P = TypeVar("P")

#: The code of `Permanent` for a path that leaves the folder; list it in `Errors(codes=…)`.
PATH_REFUSED = "path_refused"
_CHUNK = 1 << 16


@dataclass(frozen=True)
class StoredFile:
    """What can be seen of a file."""

    size: int  #: bytes
    sha256: str  #: hex


@dataclass(frozen=True)
class Rendering(Generic[P]):
    """What is written, and where."""

    #: The same payload must always give the same bytes: they are rendered again to know what a probe must find.
    content: Callable[[P], Iterable[bytes]]
    #: From the result key, relative, with `/` between its parts: `lambda key: f"reports/{key}.csv"`.
    path: Callable[[str], str]


#: Moves a finished file to its place. Anything else than `os.replace` must be as atomic.
Publish = Callable[[Path, Path, StoredFile, Attempt], None]


class FileStore(Generic[P]):
    """The adapter. `root` must exist: a store that is not mounted must not read as empty.

    A `root` that is only known later, from a setting, is given as a function.
    """

    codes = (PATH_REFUSED,)

    def __init__(
        self, sink: Sink, root: Path | Callable[[], Path], rendering: Rendering[P], *, publish: Publish | None = None
    ) -> None:
        self._sink, self._rendering = sink, rendering
        self._root: Callable[[], Path] = root if callable(root) else lambda: root
        self._publish = publish or _rename

    @property
    def sink(self) -> Sink:
        return self._sink

    def effect(self, payload: P, attempt: Attempt) -> Receipt:
        """Write the file. Until the rename nothing is published, so a failure before it is temporary."""
        name = self._rendering.path(attempt.result_key)
        place = self._place(name)
        if place is None:
            raise Permanent(PATH_REFUSED)
        part = _part(place, attempt.number)
        try:
            if not self._root().is_dir():
                raise Temporary
            place.parent.mkdir(parents=True, exist_ok=True)
            stored = self._write(part, self._rendering.content(payload))
        except OSError:
            _forget(part)
            raise Temporary from None
        except BaseException:
            _forget(part)
            raise
        self._put(part, place, stored, attempt)
        for number in range(max(1, attempt.number - 8), attempt.number):
            _forget(_part(place, number))  # left behind by attempts that were killed
        return Receipt(remote_id=name, version=Digest("sha256", bytes.fromhex(stored.sha256)))

    def expected(self, payload: P) -> Expected[StoredFile]:
        size, checksum = 0, hashlib.sha256()
        for chunk in self._rendering.content(payload):
            size += len(chunk)
            checksum.update(chunk)
        return Expected(StoredFile(size, checksum.hexdigest()), Digest("sha256", checksum.digest()))

    def probe(self, target: Target[P]) -> Observation[StoredFile]:
        """Size and checksum of the bytes that are there; a folder that cannot be read is unknown, not empty."""
        name = self._rendering.path(target.result_key)
        place = self._place(name)
        if place is None or not self._root().is_dir():
            return Unknown()
        try:
            stored = head(place)
        except FileNotFoundError:
            return Absent()
        except OSError:
            return Unknown()
        return Found(stored, Asked.RESULT_KEY, name, Digest("sha256", bytes.fromhex(stored.sha256)))

    def _place(self, name: str) -> Path | None:
        """The path inside the folder, or None where it would leave it."""
        parts = PurePosixPath(name).parts
        if not parts or "\0" in name or "\\" in name or name.startswith("/") or ".." in parts or parts[-1].startswith("."):
            return None
        root = self._root().resolve()
        place = root.joinpath(*parts)
        # A folder on the way may be a link that leads out.
        return place if place.parent.resolve().is_relative_to(root) else None

    @staticmethod
    def _write(part: Path, chunks: Iterable[bytes]) -> StoredFile:
        size, checksum = 0, hashlib.sha256()
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
        with os.fdopen(descriptor, "wb") as file:
            for chunk in chunks:
                file.write(chunk)
                size += len(chunk)
                checksum.update(chunk)
            file.flush()
            os.fsync(file.fileno())
        return StoredFile(size, checksum.hexdigest())

    def _put(self, part: Path, place: Path, stored: StoredFile, attempt: Attempt) -> None:
        try:
            self._publish(part, place, stored, attempt)
        except OSError:
            _forget(part)
            # A rename that failed has moved nothing.
            raise Temporary from None
        try:
            _sync_folder(place.parent)
        except OSError:
            raise Uncertain from None  # it is there, but a power cut could still take it away


def head(place: Path) -> StoredFile:
    """Size and checksum of the bytes at `place`. Raises OSError; FileNotFoundError says that it is not there."""
    size, checksum = 0, hashlib.sha256()
    descriptor = os.open(place, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        while chunk := file.read(_CHUNK):
            size += len(chunk)
            checksum.update(chunk)
    return StoredFile(size, checksum.hexdigest())


def _part(place: Path, attempt: int) -> Path:
    """The name beside the final one; two attempts of one operation never share it."""
    return place.with_name(f".{place.name}.{attempt}.part")


def _rename(part: Path, place: Path, stored: StoredFile, attempt: Attempt) -> None:
    os.replace(part, place)


def _forget(part: Path) -> None:
    with suppress(OSError):
        part.unlink()


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
