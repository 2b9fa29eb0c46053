"""What a person may do about a quarantined operation: replay it, correct it, have it looked up, give it up (S10, S11, S13).

Never lets an operation run again, change or end while an attempt may have reached the sink: then a look at the sink is the only
act, whoever insists. Every refusal has its reason.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final

from counterfoil.core.decisions.moves import NOW, Move
from counterfoil.core.decisions.sweeps import cancelled
from counterfoil.core.events import EventKind
from counterfoil.core.outcomes import AttemptOutcome
from counterfoil.core.reasons import Reason
from counterfoil.core.standing import Rules, Standing
from counterfoil.core.states import FINAL, State

#: How often one operation is replayed for the same content before somebody must correct it or insist (D70).
MOST_REPLAYS: Final = 5
#: How many revisions an operation may have: each correction is one, and all are kept.
MOST_REVISIONS: Final = 100


class Grounds(StrEnum):
    """Why a replay may end in another way than the last time. One is needed."""

    FIXED = "fixed"  #: its payload has a new revision since it was quarantined
    CONSUMER = "consumer"  #: what runs it was updated; the person names it
    FORCED = "forced"  #: neither: a person of the role insists, with a reason


@dataclass(frozen=True, slots=True)
class No:
    """The act is refused; nothing is written."""

    reason: Reason


def replay(rules: Rules, standing: Standing, grounds: Grounds | None, *, replays: int, now: datetime) -> Move | No:
    """Back to queued with all its tries; `replays` is how often that was done since its content last changed.

    The key keeps its generation, unless every earlier attempt was closed by probes: then nothing is known under the old one.
    Insisting (`FORCED`) answers the question whether anything changed, and no other.
    """
    refused = _not_here(rules, standing) or _doubted(rules, standing, now)
    if refused is not None:
        return refused
    if standing.cancel_asked:
        return No(Reason.CANCEL_ASKED)
    if grounds is None:
        return No(Reason.NOTHING_CHANGED)
    if grounds is Grounds.CONSUMER and replays >= MOST_REPLAYS:
        return No(Reason.REPLAYED_TOO_OFTEN)
    return Move(
        State.QUEUED,
        EventKind.REPLAYED,
        Reason.REPLAYED.value,
        standing.outcome,
        NOW,
        granted=max(rules.max_tries - standing.tries_left, 0),
        new_key=standing.outcome is AttemptOutcome.CLOSED,
    )


def edit(rules: Rules, standing: Standing, *, seen_revision: int, now: datetime) -> No | None:
    """Whether the payload may get a new revision; None: yes. `seen_revision` is the one that the person has corrected."""
    refused = _not_here(rules, standing) or _doubted(rules, standing, now)
    if refused is not None:
        return refused
    if standing.revision != seen_revision:
        return No(Reason.SOMEBODY_WAS_FIRST)
    return No(Reason.REVISED_TOO_OFTEN) if standing.revision >= MOST_REVISIONS else None


def look_first(rules: Rules, standing: Standing) -> Move | No:
    """A probe before anything else. Where nothing may have reached the sink there is nothing to look for."""
    refused = _not_here(rules, standing)
    if refused is not None:
        return refused
    if not standing.doubtful:
        return No(Reason.NOTHING_IN_DOUBT)
    kind = EventKind.AWAITING_CONFIRMATION
    return Move(State.AWAITING_CONFIRMATION, kind, Reason.LOOK_FIRST.value, standing.outcome, NOW)


def discard(standing: Standing) -> Move | No:
    """Given up for good: not applicable. Needs no declaration, so that types that are gone can be cleared."""
    if standing.state is not State.QUARANTINED:
        return _elsewhere(standing)
    if standing.doubtful:
        return No(Reason.UNRESOLVED_ATTEMPT if standing.unresolved else Reason.MAY_HAVE_BEEN_APPLIED)
    return cancelled(standing)


def _not_here(rules: Rules, standing: Standing) -> No | None:
    if standing.state is not State.QUARANTINED:
        return _elsewhere(standing)
    return No(Reason.WRONG_KIND_OF_TYPE) if rules.done_elsewhere else None


def _elsewhere(standing: Standing) -> No:
    return No(Reason.ALREADY_FINAL if standing.state in FINAL else Reason.NOT_QUARANTINED)


def _doubted(rules: Rules, standing: Standing, now: datetime) -> No | None:
    """An attempt that may have reached the sink refuses everything but a look; the reason says what is not known."""
    if not standing.doubtful:
        return None
    if standing.unresolved:
        return No(Reason.UNRESOLVED_ATTEMPT)
    if rules.keyed and not rules.version_guard and not rules.inside_horizon(standing, now):
        return No(Reason.PAST_KEY_HORIZON)
    return No(Reason.MAY_HAVE_BEEN_APPLIED)


def doubling(rules: Rules) -> str:
    """In words: what stands between a repeat and a second effect, if an earlier answer was wrong about itself."""
    wrong = "if an earlier attempt was applied although the sink said that it was not."
    if rules.in_ledger:
        return "Its effect is in the ledger's own database: what was not committed is not there, so nothing can be doubled."
    if rules.version_guard:
        return "The sink refuses an older or equal version: a repeat changes nothing."
    if not rules.keyed:
        return f"The sink promises nothing: the effect exists twice {wrong}"
    if rules.horizon is None:
        return f"The sink keeps our key without end. A new revision has a new key: its effect exists beside the other {wrong}"
    kept = f"The sink keeps our key for {rules.horizon.total_seconds() / 3600:g} h after the first attempt."
    return f"{kept} Later, and for a new revision, the effect exists twice {wrong}"
