"""Holds each declared dependency against its reason in docs/decisions.md: `python -m tests.support.dependencies`.

A reason is a line of the section "Dependencies", "- `name`: why". Fails for a dependency without one, a reason without a
dependency, a dependency without a floor, and one of the runtime that no module of ours imports.
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("counterfoil", "streams", "schemas", "sinks", "reconciler")
REASON = re.compile(r"^- `([a-z0-9-]+)`(?: \(dev\))?: \S.{20,}$", re.MULTILINE)
MODULES = {"confluent-kafka": "confluent_kafka", "faust-streaming": "faust", "pydantic-settings": "pydantic_settings"}
#: Used through another one: never imported by its own name.
UNDER = {"psycopg"}


def problems(project: str, decisions: str, imported: set[str]) -> Iterator[str]:
    """What is wrong, one sentence each."""
    declared = tomllib.loads(project)["project"]
    runtime = dict(map(_parsed, declared["dependencies"]))
    everything = runtime | dict(map(_parsed, declared["optional-dependencies"]["dev"]))
    section = re.search(r"^## Dependencies\n(.*?)(?=^## |\Z)", decisions, re.MULTILINE | re.DOTALL)
    reasons = set(REASON.findall(section[1] if section else ""))
    yield from (f"{name}: no reason in docs/decisions.md" for name in sorted(set(everything) - reasons))
    yield from (
        f"{name}: docs/decisions.md has a reason, pyproject.toml no such dependency" for name in sorted(reasons - set(everything))
    )
    yield from (f"{name}: no floor (>=)" for name, floor in sorted(everything.items()) if not floor.startswith(">="))
    unused = {name for name in runtime if MODULES.get(name, name) not in imported} - UNDER
    yield from (f"{name}: declared, and imported nowhere" for name in sorted(unused))


def imports(folders: Iterator[Path]) -> set[str]:
    """The top-level names of every module that ours import."""
    found: set[str] = set()
    for path in folders:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                found |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                found.add(node.module.partition(".")[0])
    return found


def _parsed(requirement: str) -> tuple[str, str]:
    match = re.match(r"([A-Za-z0-9-]+)(?:\[[a-z,]+\])?(.*)", requirement)
    assert match is not None
    return match[1].lower(), match[2]


def main() -> int:
    """Print what is wrong; 1 if anything is."""
    sources = (path for room in ROOMS for path in (ROOT / room).rglob("*.py") if "/parts/" not in str(path))
    decisions = (ROOT / "docs" / "decisions.md").read_text()
    found = list(problems((ROOT / "pyproject.toml").read_text(), decisions, imports(sources)))
    print("\n".join(found) if found else "dependencies: each has its reason")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
