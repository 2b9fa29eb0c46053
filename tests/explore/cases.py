"""The traces that broke earlier tables, each as a named case: without its rule the search finds it, with the rule it cannot be.

A rule is removed by wrapping the one decision of core that holds it; everything else is the real thing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from datetime import timedelta
from functools import cache
from typing import Any, Final

from counterfoil.core.decisions import Answered, Move
from counterfoil.core.standing import Rules, Standing
from counterfoil.core.states import State
from tests.explore.configuration import KEYED, KINDS, MEETS, Configuration
from tests.explore.deciding import Core
from tests.explore.judging import Violation

REAL: Final = Core()
_FAR: Final = timedelta(days=999)


@dataclass(frozen=True)
class Case:
    """One named trace: the rule that closes it, what is searched, and which invariant falls without the rule."""

    name: str
    rule: str
    configuration: Configuration
    without: Core
    falls: frozenset[str]
    bent: Configuration | None = None  #: searched instead of `configuration` where the rule is a promise, not a decision

    def wanted(self, violation: Violation) -> bool:
        """Whether this is what the trace broke."""
        return violation.invariant in self.falls


def _configuration(kind: str, *meets: str, **more: int | bool) -> Configuration:
    budgets: dict[str, Any] = {}
    for each in meets:
        budgets |= MEETS[each]
    return replace(Configuration(kind, KINDS[kind]), **(budgets | more))


def _sure(standing: Standing) -> Standing:
    """The same row, with no earlier attempt in doubt."""
    return replace(standing, doubtful_since=None, doubtful_key=None, unresolved=False)


class _WithoutMargin(Rules):
    """Rules that forget how late the request that is sent now may land."""

    __slots__ = ()

    @property
    def landing(self) -> timedelta:
        return timedelta(0)


@cache
def _without_margin(rules: Rules) -> Rules:
    return _WithoutMargin(**{each.name: getattr(rules, each.name) for each in fields(rules)})


@cache
def _without_guard(rules: Rules) -> Rules:
    return replace(rules, version_guard=False)


def _ruled(ask: Callable[..., Any], changed: Callable[[Rules], Rules]) -> Callable[..., Any]:
    """The decision, with other rules."""
    return lambda rules, *rest, **facts: ask(changed(rules), *rest, **facts)


def _standing(ask: Callable[..., Any], changed: Callable[[Standing], Standing]) -> Callable[..., Any]:
    """The decision, on a row that hides something."""
    return lambda rules, standing, *rest, **facts: ask(rules, changed(standing), *rest, **facts)


def _never_risked(standing: Standing) -> Standing:
    return replace(standing, accepted_risk=False)


def _stuck(rules: Rules, standing: Standing, *rest: Any, **facts: Any) -> Move | None:
    move = REAL.not_admissible(rules, standing, *rest, **facts)
    return None if move is not None and move.to is State.AWAITING_CONFIRMATION else move


def _any_time(ask: Callable[..., Any]) -> Callable[..., Any]:
    """An act on evidence that is taken for newer than any request."""
    return lambda rules, standing, seen: ask(rules, standing, replace(seen, asked_at=seen.asked_at + _FAR))


def _unfenced(rules: Rules, standing: Standing, answered: Answered, **facts: Any) -> Any:
    return REAL.settle(rules, standing, replace(answered, attempt=standing.attempt), **facts)


def _any_revision(rules: Rules, standing: Standing, answered: Answered, **facts: Any) -> Any:
    return REAL.record_outcome(rules, standing, replace(answered, revision=standing.revision), **facts)


def _any_record(rules: Rules, standing: Standing, now: Any, **facts: Any) -> bool:
    return REAL.may_admit(rules, standing, now, **(facts | {"revision": standing.revision}))


def _with_tries(standing: Standing) -> Standing:
    return replace(standing, tries_left=max(1, standing.tries_left))


def _same_key(standing: Standing) -> Standing:
    """The same row, with its doubts under the key that the next attempt bears."""
    return replace(standing, doubtful_key=standing.doubtful_key and (standing.revision, standing.generation))


def _falls(*invariants: str) -> frozenset[str]:
    return frozenset(invariants)


def single() -> Iterator[Case]:
    """The cases of one operation."""
    risk = _configuration("promises nothing, probe", "a person's risk")
    answers = _configuration("key with a horizon, probe", "answers")
    careless = replace(REAL, settle=_standing(REAL.settle, _sure))
    yield Case("T1", "no quarantine while an earlier attempt is doubtful", risk, careless, _falls("S1", "S11"))
    guard = replace(_configuration("version guard, probe"), ambiguous=False)
    admission = replace(
        REAL,
        may_admit=_ruled(REAL.may_admit, _without_guard),
        not_admissible=_ruled(REAL.not_admissible, _without_guard),
    )
    yield Case("T2", "a version guard makes a repeat harmless without a horizon", guard, admission, _falls("L1"))
    unrisked = replace(
        REAL,
        may_admit=_standing(REAL.may_admit, _never_risked),
        not_admissible=_standing(REAL.not_admissible, _never_risked),
    )
    yield Case("T3", "a person's risk is used up by one admission", risk, unrisked, _falls("L1"))
    yield Case("T4", "what may not be sent any more is looked at", answers, replace(REAL, not_admissible=_stuck), _falls("L1"))
    one_try = replace(KINDS["key for ever, probe"], max_tries=1)
    heard = Configuration("heard late", one_try, replays=1, edits=True, looks=1, heard=1, denials=False)
    other_key = replace(
        REAL,
        may_admit=_standing(REAL.may_admit, _same_key),
        not_admissible=_standing(REAL.not_admissible, _same_key),
    )
    replayed = replace(other_key, replay=_standing(REAL.replay, _sure))
    yield Case("T5", "no replay of a doubt, and no key protects another revision", heard, replayed, _falls("S1"))
    tired = replace(risk, rules=replace(risk.rules, max_tries=1), callback=False)
    yield Case("T6", "a decision on an older sequence is void", tired, replace(REAL, sequence_checked=False), _falls("S1", "S11"))
    hasty = replace(
        REAL,
        may_admit=_ruled(REAL.may_admit, _without_margin),
        not_admissible=_ruled(REAL.not_admissible, _without_margin),
        send_again=_ruled(REAL.send_again, _without_margin),
    )
    unasked = _configuration("key with a horizon, no probe", "answers")
    yield Case("T7", "the key must outlast the latest landing", unasked, hasty, _falls("S1"))
    yield Case("T8", "nothing is closed inside the absence wait", risk, replace(REAL, close=_any_time(REAL.close)), _falls("S11"))
    yield Case("T9", "the attempt number is the fence", answers, replace(REAL, settle=_unfenced), _falls("S9"))
    yield Case("T9", "a receipt of an old revision is evidence", heard, replace(REAL, record_outcome=_any_revision), _falls("S9"))
    yield Case("T12", "no worker sleeps longer than the send grace", risk, REAL, _falls("S1", "S11"), replace(risk, stall=3))
    quarantine = _configuration("key with a horizon, probe", "quarantine")
    yield Case("H3", "only the current revision's bytes run", quarantine, replace(REAL, may_admit=_any_record), _falls("S8"))
    late = replace(_configuration("key for ever, probe"), late=1)
    yield Case("H5", "one more probe after a permanent answer", late, careless, _falls("S11", "S1"))
    yield Case("G0", "a key protects its own revision only", heard, other_key, _falls("S10"))
    yield from _further(answers, risk)


def _further(answers: Configuration, risk: Configuration) -> Iterator[Case]:
    """Rules that no trace names, and without which the search would not be worth its time."""
    blind = replace(REAL, is_missing=lambda *asked, **facts: True, remedy=_seen_late(REAL.remedy))
    yield Case("G1", "absent is missing only past the absence wait", answers, blind, _falls("S11", "S1"))
    cancelling = replace(REAL, cancel=lambda standing, by: REAL.cancel(_sure_of_all(standing), by=by))
    blind_sink = Configuration("no probe", replace(KEYED, has_probe=False), cancels=True)
    yield Case("G2", "no cancel while an attempt is doubtful", blind_sink, cancelling, _falls("S11"))
    trying = replace(REAL, may_admit=_standing(REAL.may_admit, _with_tries))
    inside = _configuration("in the ledger", "answers")
    yield Case("G3", "tries are bounded", inside, trying, _falls("S22"))
    resend = replace(REAL, send_again=_ruled(REAL.send_again, _without_margin), may_admit=_always_harmless)
    yield Case("G4", "a repeat is checked once more when it is admitted", blind_sink, resend, _falls("S10", "S1"))
    twice = replace(REAL, requeue=_undoubted)
    yield Case("G5", "a requeue against a receipt leaves a doubt", replace(risk, callback=False), twice, _falls("S11", "S1"))


def _sure_of_all(standing: Standing) -> Standing:
    return replace(_sure(standing), outcome=None)


def _seen_late(ask: Callable[..., Any]) -> Callable[..., Any]:
    def asked(rules: Rules, mandate: Any, standing: Standing, seen: Any, **facts: Any) -> Any:
        return ask(rules, mandate, standing, replace(seen, asked_at=seen.asked_at + _FAR), **facts)

    return asked


def _always_harmless(rules: Rules, standing: Standing, now: Any, **facts: Any) -> bool:
    return REAL.may_admit(rules, _sure_of_all(standing), now, **facts)


def _undoubted(standing: Standing, seen: Any) -> Any:
    decision = REAL.requeue(standing, seen)
    return replace(decision, doubt=False, outcome=standing.outcome) if isinstance(decision, Move) else decision
