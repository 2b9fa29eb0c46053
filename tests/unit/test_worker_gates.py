"""The gates of a worker: what may be admitted, sent and taken, as the ledger last said."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from counterfoil.core.breaker import Breaker, Heard, Position, Sign
from counterfoil.core.decisions import Answered
from counterfoil.core.effect import Effect
from counterfoil.core.outcomes import AttemptOutcome
from counterfoil.core.reasons import Reason
from counterfoil.core.sink import Limits
from counterfoil.ledger.limits import Key
from counterfoil.streams.worker.gates import Gates
from counterfoil.streams.worker.hearing import Hearing
from counterfoil.streams.worker.runnable import RunnableType, runnable_types
from tests.support.gates import AFTER, SESSION, grant, opened
from tests.support.stock import rules_of
from tests.support.worked import OPERATIONS

NOW = datetime(2026, 12, 1, tzinfo=UTC)
DOWN = Answered(1, AttemptOutcome.TEMPORARY, Reason.TEMPORARY_FAILURE.value)
BUSY = replace(DOWN, retry_after=timedelta(seconds=1))
DONE = Answered(1, AttemptOutcome.DONE, Reason.RECEIPT.value)
OPEN = Breaker(Position.OPEN, AFTER, 1, NOW, NOW)
OURS = Breaker(Position.HALF_OPEN, AFTER, 1, NOW, NOW, SESSION)
THEIRS = replace(OURS, prober=SESSION + 1)
TYPES = {
    each.name: each
    for each in runnable_types(OPERATIONS, rules_of, progress_within=timedelta(seconds=120), batch=1000, lock=None)
}


def _limited(limits: Limits, *, tightened: bool = False) -> RunnableType:
    effect = TYPES["push"].effect
    assert isinstance(effect, Effect)
    sink = effect.sink.tightened(limits=limits) if tightened else replace(effect.sink, limits=limits)
    return replace(TYPES["push"], effect=replace(effect, sink=sink))


def _gates() -> Gates:
    return opened(TYPES.values())


def test_a_type_without_a_sink_has_no_gate_and_asks_for_nothing() -> None:
    gates = _gates()
    assert gates.room("in_batches", 1000) is None
    assert {ask.key for ask in gates.asks()} == {Key("once"), Key("keyed")}
    assert not gates.holds("in_batches")


def test_slots_that_the_ledger_granted_are_used_and_given_back() -> None:
    gates = _gates()
    grant(gates, slots=3)
    assert gates.room("push", 9) == 3
    gates.take("push", 3)
    assert gates.room("push", 9) == 0
    gates.give_back("push", 1)
    gates.release("push", 1)
    assert gates.room("push", 9) == 2


def test_a_token_is_spent_by_what_is_admitted_and_by_nothing_else() -> None:
    gates = _gates()
    grant(gates, tokens=4)
    gates.take("push", 4)
    gates.give_back("push", 1)
    gates.release("push", 3)
    assert gates.room("push", 9) == 1, "three were sent; slots are free again, tokens are not"


def test_what_is_lacking_is_asked_for_at_once_and_what_is_waiting_is_told() -> None:
    gates = _gates()
    asked: list[int] = []
    gates.on_lack(lambda: asked.append(1))
    grant(gates, slots=0)
    gates._gates[Key("once")].again_at = 0.0
    assert gates.room("push", 9) == 0
    assert asked == [1]
    (ask,) = [one for one in gates.asks() if one.key.name == "once"]
    assert (ask.wanted, ask.in_use, ask.tokens) == (9, 0, 0)
    assert gates.excuses("push"), "it is not this worker's turn"


def test_a_type_that_is_held_to_less_than_its_sink_has_a_gate_of_its_own_behind_it() -> None:
    gates = opened([_limited(Limits(concurrency=2, per_second=5.0), tightened=True)])
    assert set(gates.keys) == {Key("once"), Key("once", "push")}
    assert gates.room("push", 9) == 2


def test_failures_of_one_operation_open_nothing_and_those_of_several_stop_everything_here_at_once() -> None:
    """D65: not what was granted but what was heard counts; the ledger is told at once."""
    gates = _gates()
    told: list[int] = []
    gates.on_lack(lambda: told.append(1))
    for _ in range(20):
        gates.answered("push", 1, DOWN)
    assert gates.room("push", 9)
    assert not told
    for number in range(AFTER):
        gates.answered("push", number, DOWN)
    assert told
    assert gates.room("push", 9) == 0
    assert gates.refusal("push") is Reason.NOT_SENT_BREAKER
    assert gates.holds("push")
    assert gates.excuses("push"), "L6"
    assert gates.room("push_async", 9), "L3: another sink"
    (ask,) = [one for one in gates.asks() if one.key.name == "once"]
    assert ask.heard == Heard(AFTER)


def test_a_record_that_is_told_when_to_come_back_is_a_sign_of_life() -> None:
    gates = _gates()
    for number in range(AFTER - 1):
        gates.answered("push", number, DOWN)
    gates.answered("push", 99, BUSY)
    gates.answered("push", 100, DOWN)
    assert gates.room("push", 9)
    assert next(one.heard for one in gates.asks() if one.key.name == "once") == Heard(1, alive=True)


def test_once_a_sink_is_known_to_be_down_a_temporary_answer_costs_no_try() -> None:
    """D65, S22."""
    gates = _gates()
    answers = [gates.answered("push", number, DOWN) for number in range(AFTER)]
    assert [one.try_back for one in answers] == [False] * (AFTER - 1) + [True]
    grant(gates, breaker=OPEN)
    assert gates.answered("push", 50, DOWN).try_back
    assert not gates.answered("push", 50, BUSY).try_back
    assert not gates.answered("push", 50, DONE).try_back


def test_a_breaker_that_is_open_lets_nothing_through_and_takes_nothing_but_what_a_probe_needs() -> None:
    gates = _gates()
    grant(gates, breaker=OPEN)
    assert not gates.holds("push"), "nothing waits: there is nothing to probe with"
    assert gates.room("push", 9) == 0
    assert gates.holds("push")
    assert gates.refusal("push") is Reason.NOT_SENT_BREAKER


def test_one_call_probes_and_its_answer_is_told() -> None:
    gates = _gates()
    gates.room("push", 9)
    grant(gates, breaker=OURS)
    assert gates.room("push", 9) == 1
    gates.take("push", 1)
    assert gates.room("push", 9) == 0
    gates.give_back("push", 1)
    assert gates.room("push", 9) == 1, "its record needed nothing: another one may"
    gates.take("push", 1)
    gates.admitted("push", [5])
    assert gates.refusal("push") is None
    assert gates.answered("push", 4, DONE) == DONE, "that call began before"
    assert _once(gates).probe is None
    grant(gates, breaker=OURS)
    assert gates.room("push", 9) == 0, "the same probe is not granted twice"
    assert gates.answered("push", 5, DOWN).try_back
    assert _once(gates).probe is Sign.DOWN


def test_while_another_worker_probes_this_one_waits() -> None:
    gates = _gates()
    grant(gates, breaker=THEIRS)
    assert gates.room("push", 9) == 0
    assert gates.refusal("push") is Reason.NOT_SENT_BREAKER


def test_a_sink_that_is_well_again_begins_anew() -> None:
    gates = _gates()
    for number in range(AFTER):
        gates.answered("push", number, DOWN)
    grant(gates, breaker=OPEN)
    grant(gates)
    assert gates.room("push", 9)
    assert gates.refusal("push") is None
    gates.answered("push", 50, DOWN)
    assert _once(gates) == Heard(1)


def _once(gates: Gates) -> Heard:
    return next(one.heard for one in gates.asks() if one.key.name == "once")


def test_a_paused_type_or_sink_is_neither_taken_nor_admitted_nor_sent() -> None:
    """L3, L6: what is paused stands still by order, and nothing else does."""
    for target, halted in {
        ("type", "push"): {"push"},
        ("type", "in_batches"): {"in_batches"},
        ("sink", "keyed"): {"push_async"},
        ("sink", "push"): set(),
    }.items():
        gates = _gates()
        grant(gates, paused=frozenset({target}))
        for name in TYPES:
            stopped = name in halted
            assert gates.halted(name) == gates.holds(name) == gates.excuses(name) == stopped, (target, name)
            assert gates.refusal(name) == (Reason.NOT_SENT_PAUSED if stopped else None)
            assert gates.room(name, 5) == (0 if stopped else {"push": 16, "push_async": 16}.get(name)), (target, name)
        grant(gates)
        assert not any(gates.halted(name) for name in TYPES), "resumed"


def test_what_the_ledger_did_not_hear_is_said_again() -> None:
    hearing = Hearing()
    for number in (1, 2):
        hearing.note(number, Sign.DOWN)
    assert hearing.tell() == Heard(2)
    assert hearing.tell() == Heard(0)
    hearing.note(3, Sign.DOWN)
    assert hearing.tell() == Heard(1)
    hearing.untold()
    assert hearing.tell() == Heard(1)
    hearing.note(3, Sign.ALIVE)
    hearing.untold()
    assert hearing.tell() == Heard(0, alive=True), "a later sign of life makes it worthless"
    hearing.untold()
    assert hearing.tell() == Heard(0, alive=True)
