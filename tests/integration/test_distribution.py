"""What is built holds the four rooms once, under counterfoil, and everything that is not Python."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

from tests.support.processes import ROOT

ROOMS = ("streams", "schemas", "sinks", "reconciler")


def test_wheel_and_sdist_hold_the_rooms_under_the_package(tmp_path: Path) -> None:
    """The wheel is made from the sdist, as an index would serve it: the links are files there."""
    build = [sys.executable, "-m", "hatchling", "build", "-d"]
    subprocess.run([*build, str(tmp_path), "-t", "sdist"], cwd=ROOT, check=True, capture_output=True)
    with tarfile.open(next(tmp_path.glob("*.tar.gz"))) as archive:
        archive.extractall(tmp_path, filter="data")
    unpacked = next(path for path in tmp_path.iterdir() if path.is_dir())
    assert not any((unpacked / room).exists() for room in ROOMS)
    subprocess.run([*build, str(tmp_path), "-t", "wheel"], cwd=unpacked, check=True, capture_output=True)
    with zipfile.ZipFile(next(tmp_path.glob("*.whl"))) as wheel:
        names = wheel.namelist()
    assert len(names) == len(set(names))
    kept = {name for name in names if ".dist-info/" not in name}
    assert all(name.startswith("counterfoil/") for name in kept)
    code = [path for top in ("counterfoil", *ROOMS) for path in (ROOT / top).rglob("*.py")]
    under = {path.relative_to(ROOT).as_posix() for path in code}
    expected = {name if name.startswith("counterfoil/") else f"counterfoil/{name}" for name in under}
    assert expected <= kept
    assert any(name.endswith(".avsc") for name in kept)
    assert "counterfoil/py.typed" in kept
