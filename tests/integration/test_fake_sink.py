"""The fake sink as a process: what it answers, and what its journal says it did."""

import signal
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from counterfoil.core.errors import Outcome, Permanent, Temporary, Uncertain
from counterfoil.core.records import Attempt
from counterfoil.sinks.fake import Behaviour, FakeClient, FakeSink, Fate, Nature, Plan, Rule
from tests.support.attempts import an_attempt


@pytest.fixture
def sink(tmp_path: Path) -> Iterator[FakeSink]:
    with FakeSink.started(tmp_path) as sink:
        yield sink


def call(sink: FakeSink, attempt: Attempt, entity: str = "452", *, version: int = 1) -> str:
    """The outcome's name, or the remote id."""
    try:
        return FakeClient(sink.url).append(entity, {"email": "a@b.c"}, attempt, version=version).remote_id or ""
    except Outcome as outcome:
        return type(outcome).__name__


def test_a_normal_write_is_applied_once_a_key(sink: FakeSink) -> None:
    attempt = an_attempt()
    assert call(sink, attempt) == call(sink, attempt) == "452.1"
    assert [entry.fate for entry in sink.entries()] == [Fate.APPLIED, Fate.REPLAYED]
    assert sink.effects_per_operation() == {str(attempt.operation_id): 1}
    assert sink.doubled() == 0


def test_a_second_effect_of_one_operation_is_counted(sink: FakeSink) -> None:
    """S1, and that a checker that believes this journal is not blind."""
    first = an_attempt()
    call(sink, first)
    call(sink, an_attempt(operation=first.operation_id, key="another"))
    assert sink.doubled() == 1


@pytest.mark.parametrize(
    ("behaviour", "outcome", "effects_then", "again"),
    [
        (Behaviour.ANSWER_LOST, Uncertain, 1, "452.1"),
        (Behaviour.CUT, Uncertain, 0, "452.1"),
        (Behaviour.ERROR_APPLIED, Uncertain, 1, "452.1"),
        (Behaviour.ERROR_STORED, Uncertain, 0, "Uncertain"),
        (Behaviour.ERROR_STORED_APPLIED, Uncertain, 1, "Uncertain"),
        (Behaviour.KEY_IN_USE, Uncertain, 0, "452.1"),
        (Behaviour.RATE_LIMIT, Temporary, 0, "452.1"),
        (Behaviour.REJECT, Permanent, 0, "452.1"),
    ],
)
def test_each_fault_hits_the_call_it_is_planned_for(
    sink: FakeSink, behaviour: Behaviour, outcome: type[Outcome], effects_then: int, again: str
) -> None:
    """D61: a stored 500 is the answer to every repeat of the key."""
    sink.plan(Plan(rules=(Rule(behaviour, calls=(1,), seconds=3),)))
    attempt = an_attempt()
    with pytest.raises(outcome) as raised:
        FakeClient(sink.url).append("452", {"email": "a@b.c"}, attempt, version=1)
    assert sum(sink.effects_per_operation().values()) == effects_then
    assert call(sink, attempt) == again
    assert sink.met() == {behaviour.value: 1, "normal": 1}
    assert sink.doubled() == 0
    if isinstance(raised.value, Temporary):
        assert raised.value.retry_after is not None
        assert raised.value.retry_after.total_seconds() == 3


def test_a_slow_write_lands_after_its_caller_left_and_its_key_is_in_use_meanwhile(sink: FakeSink) -> None:
    sink.plan(Plan(rules=(Rule(Behaviour.SLOW, calls=(1,), seconds=1.0),)))
    attempt = an_attempt(timeout=0.2)
    assert call(sink, attempt) == "Uncertain"
    answers = [call(sink, attempt)]
    while answers[-1] == "Uncertain":  # 409 until it has landed
        answers.append(call(sink, attempt))
    assert answers[-1] == "452.1"
    fates = [entry.fate for entry in sink.entries()]
    assert fates[0] is Fate.REFUSED
    assert fates.count(Fate.APPLIED) == 1
    assert fates[-1] is Fate.REPLAYED


def test_a_late_write_lands_when_it_is_told_to(sink: FakeSink) -> None:
    sink.plan(Plan(rules=(Rule(Behaviour.LATE, entity="452", seconds=0.0),)))
    attempt = an_attempt()
    assert call(sink, attempt) == "Uncertain"
    assert sink.held() == ["452"]
    assert sink.effects_per_operation() == {}
    assert sink.land("another") == 0
    assert sink.land("452") == 1
    held, applied = sink.entries()
    assert (held.fate, applied.fate) == (Fate.HELD, Fate.APPLIED)
    assert held.request == applied.request


def test_a_late_write_after_its_key_expired_is_a_second_effect(tmp_path: Path) -> None:
    """The case that a key's horizon must exclude (S10)."""
    with FakeSink.started(tmp_path, Plan(rules=(Rule(Behaviour.LATE, calls=(1,), seconds=0.0),)), Nature(key_horizon=60)) as sink:
        attempt = an_attempt()
        assert call(sink, attempt) == "Uncertain"
        assert call(sink, attempt) == "452.1"
        sink.advance(61)
        sink.land()
        assert sink.doubled() == 1


def test_a_late_write_inside_the_horizon_is_swallowed_by_its_key(sink: FakeSink) -> None:
    sink.plan(Plan(rules=(Rule(Behaviour.LATE, calls=(1,), seconds=0.0),)))
    attempt = an_attempt()
    call(sink, attempt)
    call(sink, attempt)
    sink.land()
    assert [entry.fate for entry in sink.entries()] == [Fate.HELD, Fate.APPLIED, Fate.REPLAYED]
    assert sink.doubled() == 0


def test_a_version_guard_holds_without_a_key(tmp_path: Path) -> None:
    with FakeSink.started(tmp_path, nature=Nature(keyed=False, version_guard=True)) as sink:
        client = FakeClient(sink.url)
        client.replace("452", {"email": "new"}, an_attempt(), version=7)
        with pytest.raises(Permanent) as refused:
            client.replace("452", {"email": "old"}, an_attempt(), version=6)
        assert refused.value.code == "http_412" in client.codes
        assert client.by_entity("452")[0]["fields"] == {"email": "new"}


def test_a_write_is_invisible_until_the_read_lag_is_over(tmp_path: Path) -> None:
    with FakeSink.started(tmp_path, nature=Nature(read_lag=3600)) as sink:
        client, attempt = FakeClient(sink.url), an_attempt()
        call(sink, attempt)
        assert client.by_key(attempt.key) == []
        sink.advance(3600)
        assert [row["id"] for row in client.by_key(attempt.key)] == ["452.1"]


def test_a_dead_caller_leaves_the_journal_whole_and_many_callers_share_it(sink: FakeSink) -> None:
    attempts = [an_attempt() for _ in range(40)]
    with socket.create_connection(("127.0.0.1", int(sink.url.rsplit(":", 1)[1]))) as half:
        half.sendall(b"POST /rows HTTP/1.1\r\nHost: x\r\nContent-Length: 500\r\n\r\n{")
        threads = [threading.Thread(target=call, args=(sink, attempt, f"e{n}")) for n, attempt in enumerate(attempts)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sink.effects_per_operation() == {str(attempt.operation_id): 1 for attempt in attempts}


def test_what_is_no_write_is_refused_and_not_journalled(sink: FakeSink) -> None:
    with pytest.raises(Permanent):
        FakeClient(sink.url)._write("POST", "/rows", {"nothing": 1}, an_attempt())
    assert sink.entries() == []


def test_a_killed_sink_comes_back_with_what_it_applied(sink: FakeSink) -> None:
    attempt = an_attempt()
    call(sink, attempt)
    url = sink.url
    psutil.Process(sink.pid).send_signal(signal.SIGKILL)
    psutil.Process(sink.pid).wait(5)
    assert call(sink, attempt) == "Temporary"
    sink.restart()
    assert sink.url == url
    assert call(sink, attempt) == "452.1"
    assert [row["key"] for row in FakeClient(url).by_entity("452")] == [attempt.key]
    assert sink.doubled() == 0


def test_the_process_ends_when_whoever_started_it_is_gone(sink: FakeSink) -> None:
    assert sink._process is not None
    assert sink._process.stdin is not None
    sink._process.stdin.close()
    assert sink._process.wait(10) == 0
