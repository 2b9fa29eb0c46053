"""What deploy/ says is true of this release: commands, options, log events, settings and links exist."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from counterfoil.cli.app import app
from counterfoil.core.events import LogEvent
from counterfoil.settings import Settings

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
PAGES = sorted(DEPLOY.rglob("*.md"))
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))
MANIFESTS = sorted((DEPLOY / "kubernetes").glob("*.yaml"))
FENCE = re.compile(r"^ *```(\w*)\n(.*?)^ *```", re.MULTILINE | re.DOTALL)


def commands() -> list[tuple[str, list[str]]]:
    """Each `counterfoil` command of deploy/, with where it stands."""
    found = []
    for page in PAGES:
        text = page.read_text()
        lines = [line for language, body in FENCE.findall(text) if language == "sh" for line in body.splitlines()]
        lines += re.findall(r"`(counterfoil [^`]+)`", FENCE.sub("", text))
        found += [(page.name, shlex.split(line)[1:]) for line in lines if line.strip().startswith("counterfoil ")]
    for unit in UNITS:
        found += [(unit.name, line.split()[1:]) for line in re.findall(r"^ExecStart=(.+)$", unit.read_text(), re.MULTILINE)]
    for manifest in MANIFESTS:
        found += [
            (manifest.name, re.findall(r'"([^"]+)"', line))
            for line in re.findall(r"^ +args: \[(.+)\]$", manifest.read_text(), re.MULTILINE)
        ]
    return found


@pytest.mark.parametrize(("place", "words"), commands(), ids=lambda value: " ".join(value) if isinstance(value, list) else value)
def test_every_command_in_deploy_is_one_that_this_release_has(place: str, words: list[str]) -> None:
    """With --help at the end, names and options are read, and an unknown one is refused; nothing is run."""
    ended = CliRunner().invoke(app, [*words, "--help"])
    assert ended.exit_code == 0, f"{place}: {ended.output}"


@pytest.mark.parametrize("words", [["dlq", "resend"], ["worker", "--jason"], ["operations", "replay"]])
def test_a_command_that_is_not_there_would_be_found(words: list[str]) -> None:
    """The test above tells."""
    assert CliRunner().invoke(app, [*words, "--help"]).exit_code == 2


def test_every_page_names_a_command_and_links_to_pages_that_are_there() -> None:
    """And the table of runbooks is whole."""
    linked = set()
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
            assert (page.parent / target).is_file(), f"{page.name}: {target}"
            linked.add((page.parent / target).resolve())
    runbooks = set((DEPLOY / "runbooks").glob("*.md"))
    assert runbooks <= linked
    assert runbooks <= {page for page in PAGES if any(place == page.name for place, _ in commands())}


def test_every_event_to_be_woken_for_is_one_that_a_process_writes() -> None:
    """A name in the first column of the table is in the closed list, and the code says it somewhere."""
    rows = re.findall(r"^\| ((?:`\w+`(?:, )?)+) \|", (DEPLOY / "alerts.md").read_text(), re.MULTILINE)
    named = [LogEvent(name) for row in rows for name in re.findall(r"`(\w+)`", row)]
    assert len(named) > 12
    rooms = [ROOT / "streams", ROOT / "counterfoil" / "core"]
    source = "".join(file.read_text() for room in rooms for file in room.rglob("*.py") if file.name != "events.py")
    for event in named:
        assert f"LogEvent.{event.name}" in source or f"EventKind.{event.name}" in source, event


def test_every_setting_in_deploy_is_one_that_this_release_has() -> None:
    """COUNTERFOIL_* anywhere; other names where they are called settings by their default."""
    text = "".join(file.read_text() for file in DEPLOY.rglob("*") if file.is_file())
    for name in re.findall(r"COUNTERFOIL_([A-Z][A-Z_]+)", text):
        assert name.lower() in Settings.model_fields or name == "NAME", name
    for name, number in re.findall(r"`?(\w+)`? \((\d+) s\)", text):
        assert Settings.model_fields[name].default.total_seconds() == float(number), name


@pytest.mark.parametrize("file", [*MANIFESTS, *UNITS], ids=lambda file: file.name)
def test_a_process_has_longer_to_end_than_it_takes(file: Path) -> None:
    """D32: killed earlier, it would leave every attempt in flight in doubt."""
    found = re.search(r"(?:terminationGracePeriodSeconds: |TimeoutStopSec=)(\d+)", file.read_text())
    assert found is not None
    from counterfoil.streams.worker.life import LEAVE_WITHIN

    assert int(found[1]) > Settings.model_fields["shutdown_grace"].default.total_seconds() + LEAVE_WITHIN + 5


def test_manifests_are_plain_yaml_that_names_two_deployments() -> None:
    """By simple means, since no parser of YAML is installed; `kubernetes-validate --strict` has the last word."""
    for manifest in MANIFESTS:
        text = manifest.read_text()
        assert "\t" not in text
        assert re.findall(r"^kind: (\w+)$", text, re.MULTILINE) == ["Deployment"]
        assert re.findall(r"^  name: (\S+)$", text, re.MULTILINE) == [f"counterfoil-{manifest.stem}"]
        assert all((len(line) - len(line.lstrip())) % 2 == 0 for line in text.splitlines())
        assert "password" not in re.sub(r"#.*", "", text)
