"""Where an exception of an effect came from: its class, and the innermost frame of the user's own code.

The user's own is what is neither Counterfoil's, nor Python's, nor installed beside them; where an exception has no such frame,
the innermost of the package that was called first. No text of an exception is read, and whatever its class does, nothing is
raised.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import PurePath
from types import TracebackType
from typing import Any, Final, NamedTuple

from counterfoil.core.raised import Raised, class_name, place_name

_INSTALLED: Final = frozenset({"site-packages", "dist-packages"})
_QUALIFIED: Final[Any] = type.__dict__["__qualname__"]  # a metaclass may have put something else in its way
_TRACEBACK: Final[Any] = BaseException.__dict__["__traceback__"]


class _Frame(NamedTuple):
    module: str
    file: PurePath
    line: int

    @property
    def package(self) -> str:
        return self.module.partition(".")[0]

    @property
    def foreign(self) -> bool:
        return self.package == "counterfoil" or self.package in sys.stdlib_module_names

    @property
    def own(self) -> bool:
        return not (self.foreign or _INSTALLED.intersection(self.file.parts))

    @property
    def place(self) -> str:
        """By the path that its module's name accounts for, else by the bare name of the file."""
        named, parts = self.module.split("."), self.file.parts
        for length in (len(named), len(named) + 1):
            path = parts[-length:]
            if path and [*path[:-1], PurePath(path[-1]).stem] in (named, [*named, "__init__"]):
                return place_name(path, self.line)
        return place_name(parts[-1:], self.line)


def looked_at(error: BaseException) -> Raised:
    """What is said of an exception that an effect raised."""
    kind = type(error)
    return Raised(_tried(lambda: class_name(kind.__module__, _QUALIFIED.__get__(kind))), _tried(lambda: _place(error)))


def _tried(look: Callable[[], str]) -> str:
    try:
        return look()
    except BaseException:  # noqa: BLE001 - whatever a user's class does when it is looked at
        return ""


def _place(error: BaseException) -> str:
    frames: list[_Frame] = []
    trace: TracebackType | None = _TRACEBACK.__get__(error)
    while trace is not None:
        code = trace.tb_frame
        frames.append(_Frame(str(code.f_globals.get("__name__", "")), PurePath(code.f_code.co_filename), trace.tb_lineno))
        trace = trace.tb_next
    if not frames:
        return ""
    called = next((frame.package for frame in frames if not frame.foreign), None)
    nearest = (
        [frame for frame in frames if frame.own] or [frame for frame in frames if frame.package == called] or frames
    )  # innermost last
    return nearest[-1].place
