"""`make crash` (`python -m tests.crash [PLACE[=FAULT] …] [--guards] [--at-once N]`): the whole matrix, or the named cells."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

if __name__ == "__main__":
    from tests.crash.matrix import Wish, run

    parser = argparse.ArgumentParser(prog="python -m tests.crash", description=__doc__)
    parser.add_argument("cells", nargs="*", metavar="PLACE[=FAULT]", help="only these; default: every cell")
    parser.add_argument("--at-once", type=int, default=3, help="cells that run at the same time")
    parser.add_argument("--guards", action=argparse.BooleanOptionalAction, default=True, help="also with each guard removed")
    parser.add_argument("--folder", type=Path, help="keep every process's log there")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="counterfoil-crash-") as temporary:
        folder = chosen.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        sys.exit(run(Wish(tuple(chosen.cells), chosen.at_once, chosen.guards, folder)))
