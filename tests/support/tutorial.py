"""Runs a page of the documentation as a reader would: writes its files, types its commands, looks for what it says is printed.

A block of `sh` is run in the reader's terminal; one after the comment "a terminal of its own" is started and left running. A
block of `text` is what must have been printed: each of its lines, with times, places and versions left out of the comparison. A
block after a line like "`shop.py`:" is written to that file.
"""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from tests.support.processes import PROGRAM, ROOT, CommandLine, Started
from tests.support.waiting import eventually

FENCE = re.compile(r"(?:<!-- (?P<comment>[^>]*) -->\n|`(?P<file>[\w.]+)`:\n\n)?```(?P<kind>\w*)\n(?P<text>.*?)^```$", re.M | re.S)
CTRL_C = re.compile(r"<!-- Ctrl-C: (.*?) -->")
OWN_TERMINAL, NOT_RUN, FAILS = "a terminal of its own", "not run by the test", "fails"
#: How a terminal of its own gets at the environment of the clone, from a folder in it.
ACTIVATE = ". ../.venv/bin/activate"
#: What starts the servers; a test has them already.
SERVERS = "counterfoil.parts.servers"
#: Commands that only look: they are typed again until they show what the page says.
LOOKS = ("counterfoil operations show ", "counterfoil operations list", "cat ", "ls")
VARIES = (
    (re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d[.\d]*\+\d\d:\d\d"), "TIME"),
    (re.compile(r"\[\d+\] @ \d+"), "[N] @ N"),
    (re.compile(r"\b(partition|offset|session)=\d+"), r"\1=N"),
    (re.compile(r"PostgreSQL [\d.]+"), "PostgreSQL N"),
    (re.compile(r"\s+"), " "),
)


class Block(NamedTuple):
    """One thing to do."""

    kind: str  #: sh, text, ctrl-c, or the language of a file
    text: str
    comment: str = ""
    file: str = ""


def blocks(page: str) -> Iterator[Block]:
    """What the page has its reader do, in order."""
    found = [
        (match.start(), Block(match["kind"], match["text"], match["comment"] or "", match["file"] or ""))
        for match in FENCE.finditer(page)
    ]
    found += [(match.start(), Block("ctrl-c", match[1])) for match in CTRL_C.finditer(page)]
    return (block for _, block in sorted(found))


def lines(text: str) -> list[str]:
    """The lines that are compared."""
    for pattern, instead in VARIES:
        text = "\n".join(pattern.sub(instead, line) for line in text.splitlines())
    return [line.strip() for line in text.splitlines() if line.strip() not in ("", "…")]


@dataclass
class Reader:
    """Somebody who follows a page, in a folder of its own, on servers that are there."""

    line: CommandLine
    settings: Mapping[str, str]
    folder: Path
    terminals: dict[str, Started] = field(default_factory=dict)

    def follow(self, page: str) -> int:
        """Do all that the page says; answers how many expectations were met."""
        met, last = 0, Block("", "")
        printed = ""
        for block in blocks(page):
            if block.kind == "ctrl-c":
                self._leave(block.text.split(", "))
            elif block.file:
                (self.folder / block.file).write_text(block.text)
            elif block.kind == "toml":
                (self.folder / "counterfoil.toml").write_text(block.text)
            elif block.kind == "text":
                self._expect(block, last, printed)
                met += 1
            elif block.kind == "sh" and block.comment.startswith(OWN_TERMINAL):
                self._open(block.text.strip())
            elif block.kind == "sh" and not block.comment.startswith(NOT_RUN):
                last, printed = block, self._type(block)
        return met

    def _expect(self, block: Block, last: Block, printed: str) -> None:
        wanted = set(lines(block.text))
        looks = all(each.startswith(LOOKS) for each in last.text.strip().splitlines())

        def shown() -> bool:
            nonlocal printed
            if wanted <= set(lines(printed)):
                return True
            printed = self._type(last, may_fail=True) if looks else printed
            return False

        if looks:
            eventually(shown, within=60, what=f"{last.text}: {sorted(wanted)}; printed\n{printed}")
        missing = wanted - set(lines(printed))
        assert not missing, f"{last.text}did not print {sorted(missing)} but\n{printed}"

    def _type(self, block: Block, *, may_fail: bool = False) -> str:
        where = self.line.folder / "where"
        done = subprocess.run(
            ["bash", "-e", "-c", f"{block.text}pwd > {shlex.quote(str(where))}"],
            capture_output=True,
            text=True,
            check=False,
            cwd=self.folder,
            env=self._environment(),
            stdin=subprocess.DEVNULL,
            timeout=60,
        )
        said = done.stdout + done.stderr
        looks = all(each.startswith(LOOKS) for each in block.text.strip().splitlines())
        if not (may_fail or looks):
            assert (done.returncode != 0) is block.comment.startswith(FAILS), f"{block.text}exit {done.returncode}\n{said}"
        if done.returncode == 0:
            self.folder = Path(where.read_text().strip())
        return said

    def _open(self, text: str) -> None:
        """A new terminal stands in the clone, without an environment; the page's first lines bring the reader to `folder`."""
        change, activate, command = text.splitlines()
        assert (change, activate) == (f"cd {self.folder.name}", ACTIVATE), f"a new terminal begins otherwise: {text}"
        if SERVERS in command:
            return
        program, *arguments = shlex.split(command)
        assert program == PROGRAM.name
        self.line.folder = self.folder
        self.line.settings |= self.settings
        self.terminals[command] = self.line.start(*arguments)

    def _leave(self, commands: list[str]) -> None:
        for command in commands:
            terminal = self.terminals.pop(command)
            terminal.send(signal.SIGINT)
            assert terminal.wait() == 0, terminal.output

    def _environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("COUNTERFOIL_")}
        ours = {f"COUNTERFOIL_{name.upper()}": value for name, value in self.settings.items()}
        path = os.pathsep.join((str(PROGRAM.parent), kept.get("PATH", "")))
        return {**kept, **ours, "PATH": path, "NO_COLOR": "1", "COLUMNS": "200", "PYTHONPATH": str(ROOT)}
