"""Why a worker's process ends: the first reason counts, and nothing that comes after the end is one."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

from counterfoil.streams.worker.life import Ending


@pytest.fixture
def asked() -> Iterator[list[int]]:
    """The signals that the process sends itself."""
    seen: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, _: seen.append(number))
    yield seen
    signal.signal(signal.SIGTERM, before)


def test_the_first_error_that_nobody_could_handle_ends_the_worker(asked: list[int]) -> None:
    """S6, D28."""
    ending = Ending()
    ending.because(RuntimeError())
    ending.because(ValueError())
    assert (ending.code, asked) == (4, [signal.SIGTERM])


def test_a_timer_that_fires_after_everything_is_settled_and_committed_is_no_fault(asked: list[int]) -> None:
    """Its thread is gone, and so is its reason: the worker's exit code stays that of an orderly end."""
    ending = Ending(begun=True, over=True)
    ending.because(RuntimeError("cannot schedule new futures after shutdown"))
    assert (ending.code, ending.asked, asked) == (0, False, [])
