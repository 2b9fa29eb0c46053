"""Holds the generated pages against what the code says now: `python -m tests.support.generated [--write]`.

Each generator is a module that prints one page, and nothing else, when it is run.
"""

from __future__ import annotations

import difflib
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
#: The page, and the module that prints it.
PAGES: Mapping[str, str] = {
    "docs/reference/states.md": "counterfoil.core.diagram",
    "docs/reference/exit-codes.md": "counterfoil.cli.exits_page",
    "docs/reference/settings.md": "counterfoil.cli.settings_page",
    "docs/reference/cli.md": "tests.support.pages.cli_page",
    "docs/reference/events-and-reasons.md": "tests.support.pages.words_page",
    "docs/reference/tables.md": "tests.support.pages.tables_page",
}


def page(module: str) -> str:
    """What the generator prints."""
    done = subprocess.run([sys.executable, "-m", module], capture_output=True, text=True, check=False, cwd=ROOT)
    if done.returncode:
        raise SystemExit(f"python -m {module} failed:\n{done.stderr}")
    return done.stdout


def main(arguments: list[str]) -> int:
    """Show how each stale page differs, or write it; 1 if one is stale."""
    stale = 0
    for name, module in PAGES.items():
        path, fresh = ROOT / name, page(module)
        there = path.read_text() if path.exists() else ""
        if there == fresh:
            print(f"{name}: fresh")
        elif "--write" in arguments:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(fresh)
            print(f"{name}: written")
        else:
            stale += 1
            sys.stdout.writelines(difflib.unified_diff(there.splitlines(True), fresh.splitlines(True), name, module, n=0))
            print(f"{name}: stale; run make generate")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
