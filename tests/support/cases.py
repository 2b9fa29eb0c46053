"""Prints each public fault case with the tests that hold its right behaviour: `python -m tests.support.cases [--fill]`.

tests/cases.txt has one line a case: its id, what it is in a few words after a colon, and after `|` the ids of its tests, with
spaces between them. Fails for a case of the range that has no line or no test, for a test that pytest cannot collect, and for one
whose docstring does not name the case. `--fill` first adds every test whose docstring names a listed case.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LIST = ROOT / "tests" / "cases.txt"
#: The cases that concern what is built so far.
WHOLE = "D01 D02 D04 D05 D07 D08 D10 D11 D13 D14 D16 D17 D19 D20 D22 D23 D25 D26 D28 D29 D31 D32 D34 D35 D37 D38 D40 D41 D43 D44"
FURTHER = re.findall(r"D\d+", "D52 D53 D55 D56 D58 D59 D61 D62 D64 D65 D67 D68 D70 D71 D73 D74 D76 D88 D89 D92")
CASES: Sequence[str] = (*re.findall(r"D\d+", WHOLE), *FURTHER)
LINE = re.compile(r"(D\d+): ([^|]+?) *\|(.*)")


@dataclass(frozen=True)
class Case:
    """One line of the list."""

    id: str
    words: str
    tests: tuple[str, ...]


class Unreadable(ValueError):
    """A line of the list is not of the form."""


def read(text: str) -> dict[str, Case]:
    """The listed cases by id."""
    found: dict[str, Case] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        match = LINE.fullmatch(line.strip())
        if match is None or match[1] in found:
            raise Unreadable(f"tests/cases.txt:{number}: {'twice' if match else 'not `D00: words | tests`'}")
        found[match[1]] = Case(match[1], match[2], tuple(match[3].split()))
    return found


def problems(cases: Mapping[str, Case], collected: set[str], docstrings: Mapping[str, str]) -> Iterator[str]:
    """What is wrong, one sentence each."""
    for wanted in CASES:
        if wanted not in cases:
            yield f"{wanted}: not in tests/cases.txt"
        elif not cases[wanted].tests:
            yield f"{wanted}: no test"
    for case in cases.values():
        for test in case.tests:
            if test not in collected:
                yield f"{case.id}: pytest does not collect {test}"
            elif not re.search(rf"\b{case.id}\b", docstrings.get(test, "")):
                yield f"{case.id}: the docstring of {test} does not name it"


def docstrings(paths: Iterator[Path]) -> dict[str, str]:
    """The docstring of each test function and method, by its id without parameters."""
    found: dict[str, str] = {}
    for path in paths:
        name = path.relative_to(ROOT).as_posix()
        for node in ast.parse(path.read_text()).body:
            for place, function in _functions(node, name):
                found[f"{place}::{function.name}"] = ast.get_docstring(function) or ""
    return found


def _functions(node: ast.stmt, place: str) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        yield place, node
    elif isinstance(node, ast.ClassDef):
        for inner in node.body:
            yield from _functions(inner, f"{place}::{node.name}")


def filled(text: str, docstrings: Mapping[str, str]) -> str:
    """The list with every test added whose docstring names a listed case."""
    lines = []
    for line in text.splitlines():
        match = LINE.fullmatch(line.strip())
        if match is not None:
            named = [test for test, says in docstrings.items() if re.search(rf"\b{match[1]}\b", says)]
            tests = dict.fromkeys([*match[3].split(), *sorted(named)])
            line = " ".join([f"{match[1]}: {match[2]} |", *tests])
        lines.append(line)
    return "\n".join(lines) + "\n"


def collect() -> set[str]:
    """The ids of all tests, without parameters."""
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", "tests"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    if done.returncode:
        raise SystemExit(f"pytest cannot collect the tests:\n{done.stdout}{done.stderr}")
    return {line.partition("[")[0] for line in done.stdout.splitlines() if "::" in line}


def main(arguments: Sequence[str]) -> int:
    """Print every case with its tests; 1 if something is wrong."""
    says = docstrings((ROOT / "tests").rglob("test_*.py"))
    if "--fill" in arguments:
        LIST.write_text(filled(LIST.read_text(), says))
    cases = read(LIST.read_text())
    for case in sorted(cases.values(), key=lambda each: each.id):
        print(f"{case.id}  {case.words}")
        for test in case.tests:
            print(f"     {test}")
    wrong = list(problems(cases, collect(), says))
    tests = {test for case in cases.values() for test in case.tests}
    print(f"\n{len(cases)} cases, {len(tests)} tests, {len(wrong)} problems")
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
