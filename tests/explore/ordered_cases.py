"""The searches of several operations of one entity, and the traces that broke earlier rules of order, each as a named case."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from counterfoil.core.decisions import Move, ordering
from counterfoil.core.decisions.ordering import Neighbour, Turn
from counterfoil.core.order import Ordering
from counterfoil.core.outcomes import AttemptOutcome
from counterfoil.core.standing import Rules, Standing
from counterfoil.core.verdicts import Seen
from tests.explore.ordered import NotAdmissible, Remedied, Search, TurnOf, not_admissible, remedied
from tests.support.standings import NOW, OUTSIDE

STRICT: Final = replace(OUTSIDE, ordering=Ordering.STRICT)
LATEST: Final = replace(OUTSIDE, ordering=Ordering.LATEST_WINS)


def unkeyed(rules: Rules) -> Rules:
    """At a sink that keeps no keys: each request is an effect."""
    return replace(rules, keyed=False, horizon=None)


GUARDED: Final = replace(unkeyed(LATEST), version_guard=True)


@dataclass(frozen=True)
class Ordered:
    """One search: the rules, how many operations of the entity, and how often a person replays."""

    name: str
    rules: Rules
    operations: int
    replays: int = 0
    reconciled: bool = False  #: the reconciler acts too

    def search(
        self, turn_of: TurnOf = ordering.turn, refused: NotAdmissible = not_admissible, act: Remedied = remedied
    ) -> Search:
        """With core's rules, or with some of them changed."""
        chosen = act if self.reconciled else None
        return Search(self.rules, self.operations, turn_of, refused, replays=self.replays, remedied=chosen)


CONFIGURATIONS: Final = (
    Ordered("Strict, three operations", STRICT, 3),
    Ordered("Strict, no key", unkeyed(STRICT), 2),
    Ordered("Strict, no key; replays", unkeyed(STRICT), 2, replays=1),
    Ordered("LatestWins", LATEST, 2),
    Ordered("LatestWins, no key", unkeyed(LATEST), 2),
    Ordered("LatestWins, no key; replays", unkeyed(LATEST), 2, replays=1),
    Ordered("Strict, key for ever; the reconciler", replace(STRICT, horizon=None, max_tries=2), 2, reconciled=True),
    Ordered("LatestWins, version guard; the reconciler", replace(GUARDED, max_tries=2), 2, reconciled=True),
)


@dataclass(frozen=True)
class OrderedCase:
    """One named trace: without its rule the invariant falls, with it the trace is impossible."""

    name: str
    rule: str
    searched: Ordered
    falls: str
    turn_of: TurnOf = ordering.turn
    refused: NotAdmissible = not_admissible
    remedied: Remedied = remedied

    def without(self) -> Search:
        """The search with the rule taken out."""
        return self.searched.search(self.turn_of, self.refused, self.remedied)


def _without(field: str) -> TurnOf:
    """The turn, with one of its facts forgotten."""

    def weaker(rules: Rules, position: int, mark: int | None, others: list[Neighbour]) -> Turn:
        turn = ordering.turn(rules, position, mark, others)
        return replace(turn, **{field: False if field == "passed" else None})  # type: ignore[arg-type]

    return weaker


def _unnamed(rules: Rules, position: int, mark: int | None, others: list[Neighbour]) -> Turn:
    """It waits, and nobody can say for whom."""
    turn = ordering.turn(rules, position, mark, others)
    return turn if turn.behind is None else replace(turn, behind=None, until=NOW + timedelta(days=999))


def _never_superseded(rules: Rules, standing: Standing, now: datetime, turn: Turn) -> Move | None:
    """What was answered or closed stays where it is, although a newer version was sent."""
    over = standing.outcome in (AttemptOutcome.PERMANENT, AttemptOutcome.CLOSED)
    return None if over and turn.overtakes(standing) else not_admissible(rules, standing, now, turn)


def _unaware(rules: Rules, standing: Standing, seen: Seen, now: datetime) -> Move | None:
    """What is missing is sent again, although a newer version is there."""
    return remedied(rules, standing, replace(seen, newer=False), now)


def ordered_cases() -> Iterator[OrderedCase]:
    """The traces of several operations."""
    strict, latest = CONFIGURATIONS[1], CONFIGURATIONS[4]
    replays = CONFIGURATIONS[5]
    rule = "a permanent or closed attempt may be superseded"
    yield OrderedCase("T10", rule, replays, "L1", refused=_never_superseded)
    rule = "what is missing, and has a newer version, is not sent again"
    yield OrderedCase("T11", rule, CONFIGURATIONS[7], "L1", remedied=_unaware)
    rule = "an accepted risk keeps the entity until every wait is over"
    yield OrderedCase("T13", rule, latest, "S7", _without("until"))
    yield OrderedCase("T13", f"{rule} (Strict)", strict, "S7", _without("until"))
    yield OrderedCase("T14", "what waits names whom it waits for", strict, "L1", _unnamed)
    yield OrderedCase("T15", "what the head has passed is never sent again", strict, "S7", _without("passed"))
    yield OrderedCase("H4", "a newer version waits for an older one in doubt", latest, "S7", _without("behind"))
    yield OrderedCase("G6", "only the head of a Strict entity runs", strict, "S7", _without("behind"))
    yield OrderedCase("G7", "no older version after a newer one", latest, "S7", _without("passed"))
