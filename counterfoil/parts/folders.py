"""Temporary folders and the cache of downloaded parts; the locks that let several processes share them."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def cache() -> Path:
    """Where downloaded parts stay: COUNTERFOIL_CACHE, else the user's cache folder."""
    named = os.environ.get("COUNTERFOIL_CACHE")
    if named:
        return Path(named)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "counterfoil"


@contextmanager
def temporary(name: str) -> Iterator[Path]:
    """A folder that other accounts may pass through (a server may run as one), removed at the end."""
    folder = Path(tempfile.mkdtemp(prefix=f"counterfoil-{name}-"))
    folder.chmod(0o711)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold an exclusive lock on a file that all processes of a run agree on; gone with the process that holds it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
