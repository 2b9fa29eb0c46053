"""What an effect raised, for whoever looks for the cause: the class of the exception and the place in the code.

Never its text, never an absolute path. Names come from the user's own code and go to logs and screens: what is no plain
identifier is replaced, and both are cut at the front.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

__all__ = ["LONGEST", "Raised", "class_name", "place_name"]

LONGEST: Final = 200  #: characters of each
_WITHHELD: Final = "_"
_IDENTIFIER: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_FILE: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+\-]*")


# A plain slotted dataclass, not `Value`: it is made by the worker alone, from names that are cleaned here.
@dataclass(frozen=True, slots=True)
class Raised:
    """Both are names or empty, at most LONGEST characters."""

    error_class: str  #: qualified, without `builtins`
    place: str  #: file:line, the file by its path inside its package or its bare name; empty: not known

    @property
    def detail(self) -> dict[str, str]:
        """As the ledger and the log name it."""
        named = {"error_class": self.error_class, "place": self.place}
        return {name: value for name, value in named.items() if value}


def class_name(module: object, qualified: object) -> str:
    """The name of a class as its module and qualified name give it: `acme.crm.Client.Busy`."""
    parts = [*_split(module), *_split(qualified)]
    if parts[0] == "builtins":
        del parts[0]
    return ".".join(part if _IDENTIFIER.fullmatch(part) else _WITHHELD for part in parts if part != "<locals>")[-LONGEST:]


def place_name(path: Sequence[str], line: int) -> str:
    """A place as file and line; `path` is the file's, from its package down."""
    end = f":{line}"
    named = "/".join(part if _FILE.fullmatch(part) else _WITHHELD for part in path) or _WITHHELD
    return named[-(LONGEST - len(end)) :] + end


def _split(name: object) -> list[str]:
    return name.split(".") if type(name) is str else [_WITHHELD]
