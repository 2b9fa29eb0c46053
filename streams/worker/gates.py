"""What the types of a worker may send: each is behind the gate of its sink, and behind pauses. The one place that knows both.

Asked once a batch, on the loop, and once before each first byte; it costs a type without a sink nothing. It talks to nobody: the
keeper brings the ledger's answers.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from counterfoil.core.breaker import Sign, sign
from counterfoil.core.decisions import Answered
from counterfoil.core.effect import Effect
from counterfoil.core.outcomes import AttemptOutcome
from counterfoil.core.reasons import Reason
from counterfoil.ledger.limits import Ask, Granted, Key
from counterfoil.streams.clock import boottime
from counterfoil.streams.worker.gate import Gate
from counterfoil.streams.worker.runnable import RunnableType

#: Seconds beyond a call's time-out after which its probe counts as lost.
PROBE_MARGIN = 10.0

Paused = frozenset[tuple[str, str]]  #: ("type" or "sink", name)


class Gates:
    """Thread-safe."""

    def __init__(self, types: Iterable[RunnableType], after: int) -> None:
        self._after = after
        self._guard = threading.Lock()
        self._gates: dict[Key, Gate] = {}
        self._of: dict[str, tuple[Gate, ...]] = {}
        self._names: dict[str, frozenset[tuple[str, str]]] = {}  # by which a type may be paused
        self._waiting: Counter[str] = Counter()
        self._paused: Paused = frozenset()
        self._halted: frozenset[str] = frozenset()  # the types that are paused by it
        self._lack: Callable[[], None] = lambda: None
        self._wakes: list[Callable[[], None]] = []
        for one in types:
            self._add(one)

    def _add(self, type_: RunnableType) -> None:
        keys = {("type", type_.name)}
        gates: list[Gate] = []
        if isinstance(effect := type_.effect, Effect):
            sink, within = effect.sink, effect.timeout.total_seconds() + PROBE_MARGIN
            keys.add(("sink", sink.name))
            gates.append(self._gates.setdefault(Key(sink.name), Gate(Key(sink.name), sink.declared.limits, within)))
            gates[0].probe_within = max(gates[0].probe_within, within)
            if sink.limits != sink.declared.limits:
                own = Key(sink.name, type_.name)
                gates.append(self._gates.setdefault(own, Gate(own, sink.limits, within)))
        self._of[type_.name] = tuple(gates)
        self._names[type_.name] = frozenset(keys)

    @property
    def keys(self) -> Sequence[Key]:
        """The rows of the ledger that this worker's types need."""
        return list(self._gates)

    def on_lack(self, lack: Callable[[], None]) -> None:
        """Call this where the ledger should be asked or told now."""
        self._lack = lack

    def on_change(self, wake: Callable[[], None]) -> None:
        """Call this, on the loop, when more may be sent than before."""
        self._wakes.append(wake)

    def wake(self) -> None:
        """On the loop: something has changed."""
        self._wakes[:] = [*self._wakes[1:], *self._wakes[:1]]  # whoever was first is last the next time (L3)
        for wake in list(self._wakes):
            wake()

    # -- what may be sent

    def halted(self, name: str) -> bool:
        """Whether the type, or its sink, is paused."""
        return name in self._halted

    def room(self, name: str, waiting: int) -> int | None:
        """How many operations of the type may be admitted now, of the `waiting` ones; None: no gate says less."""
        if name in self._halted:
            self._waiting[name] = waiting
            return 0
        gates, now = self._of[name], boottime()
        with self._guard:
            self._waiting[name] = waiting
            room = min(gate.room(now) for gate in gates) if gates else None
            lacks = not room and waiting and any(gate.lacks(now) and now >= gate.again_at for gate in gates)
        if lacks:
            self._lack()
        return room

    def take(self, name: str, count: int) -> None:
        """So many are about to be admitted."""
        with self._guard:
            for gate in self._of[name]:
                gate.take(count)

    def give_back(self, name: str, count: int) -> None:
        """So many of those that were taken were not admitted."""
        with self._guard:
            for gate in self._of[name]:
                gate.give_back(count)

    def release(self, name: str, count: int) -> None:
        """So many calls have been answered."""
        with self._guard:
            for gate in self._of[name]:
                gate.in_use -= count

    def admitted(self, name: str, numbers: Iterable[int]) -> None:
        """These attempts are admitted: while a breaker is half open there is one, its probe."""
        gates = self._of[name]
        if any(gate.shut for gate in gates):
            with self._guard:
                for number in numbers:
                    for gate in gates:
                        gate.admitted(number)

    def refusal(self, name: str) -> Reason | None:
        """Why what is admitted may not be sent after all."""
        if name in self._halted:
            return Reason.NOT_SENT_PAUSED
        return Reason.NOT_SENT_BREAKER if any(gate.refuses for gate in self._of[name]) else None

    def answered(self, name: str, number: int, answered: Answered) -> Answered:
        """The answer as it counts: a temporary one of a sink that is known to be down costs no try."""
        gate = self._of[name][0]
        said = sign(answered)
        with self._guard:
            known = gate.shut
            at_once = gate.heard(number, said, self._after)
            known = known or gate.shut
        if at_once:
            self._lack()
        if known and said is Sign.DOWN and answered.outcome is AttemptOutcome.TEMPORARY:
            return replace(answered, try_back=True)
        return answered

    # -- for those who look on

    def holds(self, name: str) -> bool:
        """Whether the type's partitions are to be paused: nothing of it is sent, and nothing more is needed for a probe."""
        if name in self._halted:
            return True
        return any(gate.shut for gate in self._of[name]) and self._waiting[name] > 0

    def excuses(self, name: str) -> bool:
        """Whether the type stands still by order, and not because this worker fails it (L6)."""
        if self.halted(name) or any(gate.shut for gate in self._of[name]):
            return True
        now = boottime()
        return self._waiting[name] > 0 and any(gate.starves(now) for gate in self._of[name])

    # -- for the keeper

    def asks(self) -> list[Ask]:
        """What the ledger is told and asked of each sink."""
        now = boottime()
        with self._guard:
            waiting: Counter[Key] = Counter()
            for name, gates in self._of.items():
                for gate in gates:
                    waiting[gate.key] += 0 if name in self._halted else self._waiting[name]
            return [gate.ask(waiting[key], now) for key, gate in self._gates.items()]

    def untold(self) -> None:
        """The ledger did not answer."""
        with self._guard:
            for gate in self._gates.values():
                gate.hearing.untold()

    def told(self, granted: Mapping[Key, Granted], session: int, asked_at: float, paused: Paused) -> Paused:
        """What the ledger answered; answers what was paused until now."""
        now = boottime()
        with self._guard:
            for key, one in granted.items():
                self._gates[key].granted(one, session, asked_at, now)
            before, self._paused = self._paused, paused
            self._halted = frozenset(name for name, keys in self._names.items() if keys & paused)
        return before

    def concerns(self, target: tuple[str, str]) -> bool:
        """Whether a type of this worker can be paused by this."""
        return any(target in keys for keys in self._names.values())

    def again_in(self, longest: float) -> float:
        """Seconds until the ledger is to be asked again, at most `longest`."""
        now = boottime()
        with self._guard:
            lacking = [
                gate.again_at
                for name, gates in self._of.items()
                for gate in gates
                if self._waiting[name] and name not in self._halted and gate.lacks(now)
            ]
        return max(min([longest, *(at - now for at in lacking)]), 0.0)
