"""Waiting for a condition with a deadline; the only waiting that a test may do."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
POLL = 0.02  #: seconds between two looks


def eventually(condition: Callable[[], T | None], *, within: float = 15, what: str = "the condition") -> T:
    """The first true value of the condition; fails, with the last value seen, after `within` seconds."""
    deadline = time.monotonic() + within
    while not (seen := condition()):
        assert time.monotonic() < deadline, f"{what}: not within {within:g} s; last seen: {seen!r}"
        time.sleep(POLL)
    return seen
