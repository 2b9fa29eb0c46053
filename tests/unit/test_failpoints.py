"""Failpoints act where and when they were armed, and cost nothing elsewhere."""

from __future__ import annotations

import os
import re
import threading
from pathlib import Path

import pytest

from counterfoil.failpoints import PLACES, Armed, FailpointHit, FailpointsMisspelt, chosen
from tests.support.waiting import eventually

ROOT = Path(__file__).resolve().parents[2]


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
        place("relay.after_note")
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
    place = Armed("worker.before_admit=raise, worker.after_admit=pass", tmp_path, pytest.fail)
    with pytest.raises(FailpointHit):
        place("worker.before_admit")
    place("worker.after_admit")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["worker.after_admit", "worker.before_admit"]


@pytest.mark.parametrize("text", ["relay", "relay=", "relay=burn", "=kill", "relay=kill@", "relay=kill@0", "relay=kill@x"])
def test_a_misspelt_plan_is_refused(text: str) -> None:
    """A test that arms nothing by mistake would pass for the wrong reason."""
    with pytest.raises(FailpointsMisspelt):
        chosen({"COUNTERFOIL_FAILPOINTS": text})


def test_a_hold_keeps_its_thread_until_the_file_is_gone(tmp_path: Path) -> None:
    """The rest of the process goes on, so that a fault can be put exactly there."""
    place = Armed("relay.after_ack=hold", tmp_path, pytest.fail)
    held = threading.Thread(target=place, args=["relay.after_ack"])
    held.start()
    eventually((tmp_path / "relay.after_ack").exists, what="the file")
    assert held.is_alive()
    (tmp_path / "relay.after_ack").unlink()
    held.join(10)
    assert not held.is_alive()


def test_a_place_that_is_not_on_the_list_cannot_be_armed() -> None:
    """A misspelt place would never be passed, and the test would wait for nothing."""
    with pytest.raises(FailpointsMisspelt, match=r"relay\.before_dinner"):
        chosen({"COUNTERFOIL_FAILPOINTS": "relay.before_dinner=kill"})


def test_every_place_of_the_list_is_in_the_code_and_every_one_in_the_code_is_on_the_list() -> None:
    """The crash matrix runs the list: a place that is missing there is never tried."""
    rooms = ("counterfoil", "streams", "schemas", "sinks", "reconciler")
    text = "\n".join(path.read_text() for room in rooms for path in (ROOT / room).rglob("*.py") if path.name != "failpoints.py")
    passed = set(re.findall(r'failpoint\(\s*"([^"]+)"', text)) | set(re.findall(r'"(due\.before_[a-z_]+)"', text))
    assert passed == set(PLACES)
    assert all(re.fullmatch(r"[a-z_]+\.[a-z_]+", name) and len(says) > 20 for name, says in PLACES.items())
