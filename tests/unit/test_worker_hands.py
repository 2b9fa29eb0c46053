"""What a worker has in hand, its slots and its threads: bounds that hold, and nothing waited for that cannot come."""

from __future__ import annotations

import threading
from dataclasses import replace
from datetime import timedelta
from typing import Any, cast

from counterfoil.core.effect import Effect
from counterfoil.core.sink import Limits
from counterfoil.streams.worker.in_hand import LONGEST_TAIL, MOST_BYTES, Finished, InHand
from counterfoil.streams.worker.record import Record
from counterfoil.streams.worker.runnable import RunnableType, runnable_types, topics_of
from counterfoil.streams.worker.slots import Slots
from counterfoil.streams.worker.threads import Threads
from tests.support.gates import opened
from tests.support.stock import rules_of
from tests.support.waiting import eventually
from tests.support.worked import OPERATIONS, in_batches, push, push_async

PLACE = ("l.in_batches.commands", 0)


def _records(hands: InHand, *offsets: int, size: int = 1) -> list[Record]:
    prefix = hands.prefix(PLACE)
    assert prefix is not None
    return [Record(cast(Any, None), prefix, offset, size) for offset in offsets]


def _hands(most: int = 10) -> InHand:
    hands = InHand(most)
    hands.assign([PLACE])
    return hands


def _take(hands: InHand, *offsets: int, size: int = 1) -> list[Record]:
    records = _records(hands, *offsets, size=size)
    hands.take("in_batches", records)
    return records


def _finish(hands: InHand, records: list[Record]) -> None:
    hands.finish("in_batches", [Finished(record, None, 0) for record in records])


def test_hands_are_full_by_records_by_bytes_and_by_the_length_of_a_tail() -> None:
    """D35: memory is bounded by back-pressure, whatever fills it."""
    assert not _hands().full("in_batches", PLACE, paused=False)
    for fill in ({"count": 10, "size": 1}, {"count": 2, "size": MOST_BYTES // 2}):
        hands = _hands()
        _take(hands, *range(fill["count"]), size=fill["size"])
        assert hands.full("in_batches", PLACE, paused=False)
    hands = _hands(most=LONGEST_TAIL * 2)
    records = _take(hands, *range(LONGEST_TAIL))
    _finish(hands, hands.begin("in_batches", records[1:]))
    assert hands.full("in_batches", PLACE, paused=False), "only a tail behind one record is left"


def test_a_type_whose_records_wait_fills_its_own_part_of_the_hands_and_no_others() -> None:
    """L3: one that is paused, or whose sink is down, leaves the rest to those that go on."""
    hands = InHand(10, types=2)
    hands.assign([PLACE, ("l.push.commands", 0)])
    hands.take("in_batches", _records(hands, 0, size=MOST_BYTES // 2))
    assert hands.full("in_batches", PLACE, paused=False)
    assert not hands.full("push", ("l.push.commands", 0), paused=False)
    assert hands.wait_for_room(["push"], 0.0)
    assert not hands.wait_for_room(["in_batches"], 0.0)


def test_a_paused_partition_resumes_half_way_down() -> None:
    hands = _hands()
    records = hands.begin("in_batches", _take(hands, *range(10)))
    _finish(hands, records[:4])
    assert hands.full("in_batches", PLACE, paused=True)
    assert not hands.full("in_batches", PLACE, paused=False)
    _finish(hands, records[4:6])
    assert not hands.full("in_batches", PLACE, paused=True)


def test_what_was_not_begun_when_a_partition_is_revoked_is_never_begun() -> None:
    """D29, S6: its next owner gets it again."""
    hands = _hands()
    begun = hands.begin("in_batches", _take(hands, 0, 1))
    waiting = _take(hands, 2, 3)
    hands.revoke([PLACE], 0)
    assert hands.begin("in_batches", waiting) == []
    assert hands.prefix(PLACE) is None
    _finish(hands, begun)
    (moved,) = hands.committable()
    assert (moved.place, moved.position) == (PLACE, 2)


def test_an_answer_that_comes_after_a_new_assignment_finishes_nothing_of_it() -> None:
    """D29, S6, S9: the new assignment's bookkeeping is its own."""
    hands = _hands()
    late = hands.begin("in_batches", _take(hands, 0, 1))
    hands.revoke([PLACE], 0)
    hands.forget([PLACE])
    hands.assign([PLACE])
    _take(hands, 0, 1)
    _finish(hands, late)
    assert hands.committable() == []


def test_revoking_waits_for_what_was_begun_and_no_longer_than_its_grace() -> None:
    """D29."""
    hands = _hands()
    begun = hands.begin("in_batches", _take(hands, 0))
    revoking = threading.Thread(target=hands.revoke, args=([PLACE], 30.0))
    revoking.start()
    eventually(lambda: hands.prefix(PLACE) is None, what="the revocation")
    assert revoking.is_alive()
    _finish(hands, begun)
    revoking.join(5)
    assert not revoking.is_alive()


def test_work_that_broke_off_is_not_waited_for_and_not_committed() -> None:
    """D22, S6."""
    hands = _hands()
    hands.abandon(hands.begin("in_batches", _take(hands, 0)))
    assert hands.close(0.0)
    assert hands.committable() == []


def test_a_commit_that_failed_is_offered_again() -> None:
    """D32."""
    hands = _hands()
    _finish(hands, hands.begin("in_batches", _take(hands, 0)))
    assert [each.position for each in hands.committable()] == [1]
    assert hands.committable() == []
    hands.commit_failed(PLACE)
    assert [each.position for each in hands.committable()] == [1]


def _types(**changed: Any) -> dict[str, RunnableType]:
    given: dict[str, Any] = {
        "progress_within": timedelta(seconds=120),
        "batch": 1000,
        "lock": None,
    }
    types = runnable_types(changed.pop("operations", OPERATIONS), rules_of, **{**given, **changed})
    return {each.name: each for each in types}


def test_each_type_has_two_roads_and_its_own_places() -> None:
    types = _types()
    assert topics_of("l", types.values())["l.push.retry"] == ("push", "retry")
    assert (types[in_batches.name].places, types["one_by_one"].places) == (100, 100)
    assert _types(batch=7)[in_batches.name].places == 7
    assert types[push.name].rules.timeout == timedelta(seconds=9), "its time-out and the send grace to wait for its turn"


def test_slots_are_bounded_by_process_sink_and_threads() -> None:
    types = _types()
    slots = Slots(total=12, threads=5, gates=opened(types.values()))
    assert slots.free(types[push.name], 99) == 5, "threads"
    assert slots.free(types[push_async.name], 99) == 12, "process"
    slots.take(types[push.name], 5)
    assert slots.free(types[push.name], 99) == 0
    assert slots.free(types[push_async.name], 99) == 7
    effect = types[push.name].effect
    assert isinstance(effect, Effect)
    limited = replace(types[push.name], effect=replace(effect, sink=replace(effect.sink, limits=Limits(concurrency=3))))
    narrow = Slots(total=100, threads=100, gates=opened([limited]))
    assert narrow.free(limited, 99) == 3, "sink"


def test_whoever_was_woken_first_is_woken_last_the_next_time() -> None:
    """L3: no type starves another of slots."""
    types = _types()
    slots = Slots(10, 10, opened(types.values()))
    woken: list[str] = []
    slots.on_free(lambda: woken.append("a"))
    slots.on_free(lambda: woken.append("b"))
    slots.take(types[push.name], 2)
    slots.release(types[push.name], 1)
    slots.release(types[push.name], 1)
    assert woken == ["b", "a", "a", "b"]


def test_a_lost_thread_is_replaced_counted_and_forgiven_when_it_returns() -> None:
    """D31: a call past its time-out takes its thread, not the worker's."""
    threads = Threads(1)
    held = threading.Event()
    lost = threads.submit(lambda: held.wait(30))
    eventually(lost.future.running, what="the call")
    assert threads.lose(lost)
    assert threads.lost == 1
    assert threads.submit(lambda: "next").future.result(10) == "next"
    held.set()
    assert lost.future.result(10) is True
    eventually(lambda: threads.lost == 0, what="the thread's return")


def test_a_call_that_was_never_begun_can_be_taken_back() -> None:
    """S8: it was certainly not sent."""
    threads = Threads(1)
    held = threading.Event()
    first = threads.submit(lambda: held.wait(30))
    eventually(first.future.running, what="the call")
    second = threads.submit(lambda: "never")
    assert not threads.lose(second)
    assert threads.lost == 0
    held.set()
    assert first.future.result(10) is True
