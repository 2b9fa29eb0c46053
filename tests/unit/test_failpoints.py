"""Failpoints act where and when they were armed, and cost nothing elsewhere."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from counterfoil.failpoints import Armed, FailpointHit, FailpointsMisspelt, chosen


def test_nothing_is_armed_without_the_variable() -> None:
    """In production a place is an empty function, whatever its name."""
    place = chosen({})
    place("relay.after_ack")
    assert not isinstance(place, Armed)
    assert chosen({"COUNTERFOIL_FAILPOINTS": ""}) is place


def test_a_place_acts_once_on_its_armed_pass(tmp_path: Path) -> None:
    """@3 is the third time it is passed; the fourth does nothing."""
    acts: list[str] = []
    place = Armed("relay.after_ack=kill@3", None, acts.append)
    seen = []
    for _ in range(5):
        place("relay.after_ack")
        place("relay.before_note")
        seen.append(len(acts))
    assert seen == [0, 0, 1, 1, 1]
    assert acts == ["kill"]


def test_a_hit_leaves_a_file_before_it_acts(tmp_path: Path) -> None:
    """A test waits for the file; a pass that does not act leaves none."""
    found: list[bool] = []
    place = Armed("worker.after_settle=stop@2", tmp_path, lambda _: found.append((tmp_path / "worker.after_settle").exists()))
    place("worker.after_settle")
    assert list(tmp_path.iterdir()) == []
    place("worker.after_settle")
    assert found == [True]
    assert (tmp_path / "worker.after_settle").read_text() == str(os.getpid())


def test_raise_raises_and_pass_only_leaves_its_file(tmp_path: Path) -> None:
    """Both are for tests inside one process."""
    place = Armed("a=raise, b=pass", tmp_path, pytest.fail)
    with pytest.raises(FailpointHit):
        place("a")
    place("b")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]


@pytest.mark.parametrize("text", ["relay", "relay=", "relay=burn", "=kill", "relay=kill@", "relay=kill@0", "relay=kill@x"])
def test_a_misspelt_plan_is_refused(text: str) -> None:
    """A test that arms nothing by mistake would pass for the wrong reason."""
    with pytest.raises(FailpointsMisspelt):
        chosen({"COUNTERFOIL_FAILPOINTS": text})
