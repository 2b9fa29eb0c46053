"""What is searched: kinds of sinks and types, and how much of each misfortune one operation meets."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final

from counterfoil.core.standing import REVIEW_WITHIN, Rules
from counterfoil.core.verdicts import Mandate

TICK: Final = timedelta(seconds=1)
ZERO: Final = timedelta(0)

#: A probed effect outside, keyed, at a sink that forgets a key six ticks after it came. Run time, send grace and read lag are one
#: tick each: a request lands two ticks after its admission at the latest, and three after it nothing can be hidden any more.
KEYED: Final = Rules(
    name="searched",
    in_ledger=False,
    done_elsewhere=False,
    has_probe=True,
    receipt_confirms=False,
    version_guard=False,
    keyed=True,
    horizon=6 * TICK,
    by_nature_unique=False,
    request_life=ZERO,
    read_lag=TICK,
    send_grace=TICK,
    timeout=TICK,
    window=ZERO,
    deadline=100 * TICK,
    first=TICK,
    cap=TICK,
    share=1.0,
    max_tries=2,
    money=False,
    outcome_within=None,
    review_within=REVIEW_WITHIN,
)


#: The reconciler does what the policy may ask for.
ENFORCED: Final = Mandate(requeue=True, compensate=True)


@dataclass(frozen=True)
class Configuration:
    """One search: the type's rules, the reconciler's mandate, and the budgets of misfortune."""

    name: str
    rules: Rules
    mandate: Mandate = ENFORCED
    not_sent: int = 0
    risks: int = 0
    replays: int = 0
    edits: bool = False
    looks: int = 0
    cancels: bool = False
    callback: bool = False  #: a receipt may come in by itself
    ambiguous: bool = False  #: the deadline of the proof may pass
    late: int = 0  #: requests that land later than the sink declares, in time for the probe after the next attempt
    heard: int = 0  #: requests that land as late as they like before another is sent, and whose receipt comes in at once
    stall: int = 0  #: ticks beyond the send grace that a worker sleeps before its first byte
    sampled: bool = True  #: succeeded is probed
    denials: bool = True  #: asserted: what is denied does not exist; not where the world is bent past every wait

    @property
    def landing(self) -> int:
        """The age at which a request may still land."""
        return self.rules.landing // TICK + self.stall

    @property
    def seen_from(self) -> int:
        """The age of an attempt from which nothing it did is hidden from a probe."""
        return (self.rules.timeout + self.rules.absence_wait) // TICK

    @property
    def horizon(self) -> int | None:
        """In ticks."""
        return None if self.rules.horizon is None else self.rules.horizon // TICK

    @property
    def oldest(self) -> int:
        """The age past which nobody can tell two instants apart."""
        return max(self.seen_from, self.landing, self.horizon or 0) + 2


_FOREVER: Final = replace(KEYED, horizon=None)
_NATURE: Final = replace(_FOREVER, by_nature_unique=True)
_NOTHING: Final = replace(KEYED, keyed=False, horizon=None)
_GUARD: Final = replace(_NOTHING, version_guard=True)
_BLIND: Final = replace(KEYED, has_probe=False)

#: Every kind of sink and of proof.
KINDS: Final = {
    "key with a horizon, probe": KEYED,
    "key for ever, probe": _FOREVER,
    "by nature, probe": _NATURE,
    "promises nothing, probe": _NOTHING,
    "version guard, probe": _GUARD,
    "key with a horizon, no probe": _BLIND,
    "key for ever, no probe": replace(_FOREVER, has_probe=False),
    "promises nothing, no probe": replace(_NOTHING, has_probe=False),
    "version guard, no probe": replace(_GUARD, has_probe=False),
    "the receipt confirms": replace(_BLIND, receipt_confirms=True),
    "money, no probe": replace(_BLIND, money=True),
    "in the ledger": replace(_NOTHING, in_ledger=True, has_probe=False, receipt_confirms=True),
}
#: What one operation meets: answers in every order, a person who takes a risk, or quarantine, edit and replay.
MEETS: Final = {
    "answers": {"not_sent": 1, "cancels": True, "callback": True, "ambiguous": True},
    "a person's risk": {"risks": 1, "ambiguous": True, "callback": True},
    "quarantine": {"replays": 1, "edits": True, "looks": 1, "callback": True, "cancels": True},
}


def _crossed() -> Iterator[Configuration]:
    for kind, rules in KINDS.items():
        for meets, budgets in MEETS.items():
            if not (rules.in_ledger and meets == "a person's risk"):  # nothing in the ledger is ever in review
                yield replace(Configuration(f"{kind}; {meets}", rules), **budgets)  # type: ignore[arg-type]


def _planted() -> Iterator[Configuration]:
    """What the promises rest on is bent: only what still holds then is asserted."""
    answers = MEETS["answers"]
    three = replace(KEYED, max_tries=3, horizon=10 * TICK)
    yield replace(Configuration("three tries in one horizon", three), **answers)  # type: ignore[arg-type]
    yield replace(Configuration("succeeded is not probed", KEYED, sampled=False), **answers)  # type: ignore[arg-type]
    yield replace(Configuration("nothing enforced", KEYED, mandate=Mandate()), **answers)  # type: ignore[arg-type]
    yield replace(Configuration("version guard, a worker oversleeps", _GUARD, stall=3, denials=False), **answers)  # type: ignore[arg-type]
    yield replace(Configuration("key for ever, a landing after the wait", _FOREVER, late=1), **answers)  # type: ignore[arg-type]


#: All that `make explore` searches with one operation.
CONFIGURATIONS: Final[tuple[Configuration, ...]] = (*_crossed(), *_planted())
