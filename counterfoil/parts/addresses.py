"""The two lines of `counterfoil.toml` that say where the servers are: written over those that were there, everything else kept.

It must never write a file that would not be read back as it was, but for the two lines.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from counterfoil.parts.server import PartFailed

OURS = ("database", "brokers")
LINE = re.compile(rf"\s*(?:{'|'.join(OURS)})\s*=")
TABLE = re.compile(r"\s*\[")  # the first one ends what belongs to no table


def told(addresses: dict[str, str]) -> str:
    """The lines as they are written and printed."""
    return "".join(f'{name} = "{addresses[name]}"\n' for name in OURS)


def addressed(text: str, addresses: dict[str, str]) -> str:
    """The file's text with these addresses in place of those that it had, or above its first table. Raises ValueError."""
    lines = text.splitlines(keepends=True)
    top = next((number for number, line in enumerate(lines) if TABLE.match(line)), len(lines))
    had = [number for number in range(top) if LINE.match(lines[number])]
    before = [line for number, line in enumerate(lines[: had[0] if had else top]) if number not in had]
    after = [line for number, line in enumerate(lines) if number >= len(before) and number not in had]
    if before and not before[-1].endswith("\n"):
        before[-1] += "\n"
    kept = _read("".join(before + after))
    written = "".join([*before, told(addresses), *after])
    if _read(written) != kept | addresses:
        raise ValueError("has one of the two keys in a form that cannot be replaced")
    return written


def _read(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        raise ValueError("is not valid TOML") from None


def write(file: Path, addresses: dict[str, str]) -> None:
    """Make the file, or write the two lines into it. Raises PartFailed, with what to do, and has changed nothing then."""
    try:
        text = file.read_text(encoding="utf-8") if file.exists() else ""
        file.write_text(addressed(text, addresses), encoding="utf-8")
    except UnicodeDecodeError:
        wrong = "is not UTF-8 text"
    except ValueError as error:
        wrong = str(error)
    except OSError:
        wrong = "cannot be read and written"
    else:
        return
    raise PartFailed(f"{file} {wrong}, and was left as it is: correct it, or take the lines without --write")
