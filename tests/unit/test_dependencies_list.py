"""The script behind `make check` wants a reason, a floor and a use for every dependency."""

from __future__ import annotations

import pytest

from tests.support.dependencies import problems

PROJECT = """
[project]
dependencies = ["orjson>=3.10", "psycopg[binary]>=3.2"]
[project.optional-dependencies]
dev = ["pytest>=8.4"]
"""
DECISIONS = """# Decisions
## Dependencies
- `orjson`: the one JSON codec, behind core's checks.
- `psycopg`: the driver of the ledger's database.
- `pytest` (dev): the runner of the tests, strict.
## Another section
- `left-pad`: mentioned elsewhere, which does not count.
"""
ORPHAN = "orjson: docs/decisions.md has a reason, pyproject.toml no such dependency"


def test_a_dependency_with_reason_floor_and_use_is_fine() -> None:
    """psycopg is used through SQLAlchemy; a tool of dev is not imported."""
    assert list(problems(PROJECT, DECISIONS, {"orjson"})) == []


@pytest.mark.parametrize(
    ("project", "decisions", "sentence"),
    [
        (PROJECT.replace("pytest>", "mypy>=1\", \"pytest>"), DECISIONS, "mypy: no reason in docs/decisions.md"),
        (PROJECT, DECISIONS.replace("the driver of the ledger's database.", "fast"), "psycopg: no reason in docs/decisions.md"),
        (PROJECT.replace("pytest>=8.4", "pytest"), DECISIONS, "pytest: no floor (>=)"),
        (PROJECT.replace('"orjson>=3.10", ', ""), DECISIONS, ORPHAN),
        (PROJECT.replace("orjson", "rich"), DECISIONS.replace("orjson", "rich"), "rich: declared, and imported nowhere"),
    ],
)  # fmt: skip
def test_what_is_missing_is_named(project: str, decisions: str, sentence: str) -> None:
    """One sentence a problem."""
    assert list(problems(project, decisions, {"orjson"})) == [sentence]
