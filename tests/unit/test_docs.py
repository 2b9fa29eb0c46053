"""What the documentation says is there, is there: links, commands, options, settings, names, headers, reasons."""

from __future__ import annotations

import ast
import importlib
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import pytest

from counterfoil.core.reasons import Reason
from counterfoil.schemas import envelope
from counterfoil.settings import Settings
from tests.support.pages.cli_page import every_command
from tests.support.pages.words_page import page as words_page
from tests.support.tutorial import blocks

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
NAMES = [str(page.relative_to(ROOT)) for page in PAGES]
LINK = re.compile(r"\]\((?!https?:)([^)#\s]*)(?:#([\w-]+))?\)")
IN_CODE = re.compile(r"^```.*?^```|`[^`\n]*`", re.MULTILINE | re.DOTALL)
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*")
pages = pytest.mark.parametrize("name", NAMES)


def anchors(page: Path) -> set[str]:
    """The places of a page, as they are linked to."""
    heads = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", head.lower()).replace(" ", "-") for head in heads}


@pages
def test_every_link_leads_to_something(name: str) -> None:
    page = ROOT / name
    for target, anchor in LINK.findall(IN_CODE.sub("", page.read_text())):
        there = (page.parent / target).resolve() if target else page
        assert there.exists(), f"{name}: {target}"
        assert not anchor or anchor in anchors(there), f"{name}: {target}#{anchor}"


def typed(page: Path) -> Iterator[str]:
    """The commands of ours that a page shows, in blocks and in backquotes."""
    text = page.read_text()
    for found in re.finditer(r"^counterfoil [^\n]*|`counterfoil [^`\n]*`", text, re.MULTILINE):
        yield found[0].strip("`")


@pages
def test_every_command_and_option_that_is_shown_exists(name: str) -> None:
    commands = every_command()
    groups = {" ".join(command.split()[:length]) for command in commands for length in (1, 2)}
    for shown in typed(ROOT / name):
        if shown in {"counterfoil --help", "counterfoil --version"}:
            continue
        words = re.split(r"\s(?=-|[A-Z\[#0-9]|\|)", shown)[0].split()
        known = next((" ".join(words[:length]) for length in (3, 2) if " ".join(words[:length]) in commands), None)
        assert known or " ".join(words) in groups, f"{name}: {shown}"
        options = {option for one in commands[known].params for option in one.opts} | {"--settings"} if known else set()
        assert set(OPTION.findall(shown.split(" #")[0])) <= options, f"{name}: {shown}"


@pages
def test_python_in_the_pages_compiles_and_imports_names_that_exist(name: str) -> None:
    for block in blocks((ROOT / name).read_text()):
        if block.kind != "python":
            continue
        for node in ast.walk(ast.parse(block.text)):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("counterfoil"):
                module = importlib.import_module(node.module or "")
                assert not [one.name for one in node.names if not hasattr(module, one.name)], name


@pages
def test_python_that_a_page_says_is_from_an_example_stands_there(name: str) -> None:
    from_example = re.compile(r"^From \[(examples/\w+\.py)\].*?\n\n```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
    for file, text in from_example.findall((ROOT / name).read_text()):
        assert text in (ROOT / file).read_text(), f"{name}: {file}"


@pages
def test_toml_in_the_pages_has_settings_that_exist(name: str) -> None:
    for block in blocks((ROOT / name).read_text()):
        if block.kind == "toml":
            assert set(tomllib.loads(block.text)) <= set(Settings.model_fields), name


def test_every_setting_that_a_page_names_exists() -> None:
    guide = (ROOT / "docs/how-to/run-relay-and-worker.md").read_text()
    table = guide[guide.index("| setting |") : guide.index("## Ending")]
    named = {word for line in table.splitlines() for word in re.findall(r"`(\w+)`", line.split("|")[1] if "|" in line else "")}
    assert named
    assert named <= set(Settings.model_fields)


def test_the_page_of_headers_names_every_header() -> None:
    page = (ROOT / "docs/reference/headers.md").read_text()
    operation = UUID(int=1)
    command = envelope.Command(1, operation, "mail", 1, "key", 1, "00-1-2-01")
    letter = envelope.DeadLetter(operation, "timeout", "mail", "counterfoil", "topic", 0, 0, 0, operation, 1)
    texts = envelope.dead_letter_texts(letter, [(name, b"x") for name in envelope.TRAVELLING])
    built = [
        *envelope.command_headers(b"/s", command),
        *envelope.state_headers(b"/s", operation, "mail", 1, "00-1-2-01"),
        *envelope.dead_letter_headers(b"/s", texts, 1),
    ]
    missing = {name for name, _ in built if f"`{name}`" not in page}
    assert not missing
    named = set(re.findall(r"`(c[ef]_\w+)`", page)) - {"cf_check"}
    assert named <= {name for name, _ in built}


def test_every_word_of_the_closed_lists_has_a_meaning() -> None:
    page = words_page()
    assert "|  |" not in page
    assert all(f"`{one.value}`" in page for one in Reason)


def test_every_invariant_that_code_or_tests_name_is_on_its_page() -> None:
    there = set(re.findall(r"^\| ([SL]\d+) \|", (ROOT / "docs/reference/invariants.md").read_text(), re.MULTILINE))
    rooms = ("counterfoil", "streams", "schemas", "sinks", "reconciler", "tests")
    for path in (path for room in rooms for path in (ROOT / room).rglob("*.py")):
        docs = re.findall(r'"""(.*?)"""', path.read_text(), re.DOTALL)
        named = {one for doc in docs for one in re.findall(r"(?<![\w-])[SL]\d{1,2}(?!\w)", doc)}
        assert named <= there, path


def test_no_page_speaks_of_a_machine() -> None:
    for page in PAGES:
        assert not re.search(r"(?<![\w.])/(?:home|root|tmp|work|Users)/", page.read_text()), page.name


@pages
def test_a_migration_that_a_page_prints_is_the_newest(name: str) -> None:
    newest = max(file.name[:4] for file in (ROOT / "counterfoil/ledger/migrations/versions").glob("[0-9]*.py"))
    assert set(re.findall(r"(?:at migration|migrations: at) (\d{4})", (ROOT / name).read_text())) <= {newest}
