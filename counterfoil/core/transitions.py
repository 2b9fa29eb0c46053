"""The table of states: from where to where, by whom, on which condition, with which event. The whole of it, as data.

Everything that writes a state stands in one of these rows; the decisions return nothing else, and the ledger writes nothing
else. The page of states and its diagram are made from it. Never change a row without a search for what it breaks.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from counterfoil.core.events import EventKind
from counterfoil.core.states import UNFINISHED, State


class Actor(StrEnum):
    """Who makes a transition."""

    CALLER = "caller"  #: the program that enqueues or cancels, in its own transaction
    WORKER = "worker"
    CALLBACK = "callback"  #: a sink's late word, handed in by the caller's program
    RELAY = "relay"
    DUE_SWEEPER = "due sweeper"
    RECONCILER = "reconciler"
    PERSON = "person"
    RECOVER = "recover"  #: a recovery plan that a person confirmed


@dataclass(frozen=True, slots=True)
class Row:
    """One row: any of `sources` to any of `targets`, by any of `who`. A source of None is an operation that is not there yet."""

    sources: frozenset[State | None]
    targets: frozenset[State]
    who: frozenset[Actor]
    condition: str
    kind: EventKind


def _row(
    sources: tuple[State | None, ...], targets: tuple[State, ...], who: tuple[Actor, ...], kind: EventKind, condition: str
) -> Row:
    return Row(frozenset(sources), frozenset(targets), frozenset(who), condition, kind)


_Q, _R, _RW, _AC = State.QUEUED, State.RUNNING, State.RETRY_WAIT, State.AWAITING_CONFIRMATION
_OK, _CF, _QU, _MR = State.SUCCEEDED, State.CONFIRMED, State.QUARANTINED, State.MANUAL_REVIEW
_CG, _CD, _NA = State.COMPENSATING, State.COMPENSATED, State.NOT_APPLICABLE
_CALLER, _WORKER, _CALLBACK, _RELAY = Actor.CALLER, Actor.WORKER, Actor.CALLBACK, Actor.RELAY
_SWEEPER, _RECONCILER, _PERSON, _RECOVER = Actor.DUE_SWEEPER, Actor.RECONCILER, Actor.PERSON, Actor.RECOVER
_ACT = "named, role, newest evidence, reason, risk of doubling shown"
_PROBED = "on a probe newer than the last attempt; where no probe is declared, the person's written finding counts as that probe"

TABLE: Final[tuple[Row, ...]] = (
    _row((None,), (_Q,), (_CALLER,), EventKind.ACCEPTED, "operation, payload and outbox row in one transaction"),
    _row(
        (None,),
        (_AC,),
        (_CALLER,),
        EventKind.ACCEPTED,
        "done elsewhere: no command, no attempt; due when the outcome should be recorded; never sent by us",
    ),
    _row(
        (None, *(s for s in State if s in UNFINISHED)),
        tuple(s for s in State if s not in (_Q, _R)),
        (_RECOVER,),
        EventKind.RECOVERED,
        "a plan that a person confirmed: what the last state record says, else awaiting_confirmation; "
        "the epoch is raised in the same act",
    ),
    _row(
        (_Q, _RW),
        (_R,),
        (_WORKER,),
        EventKind.ADMITTED,
        "due; the record's revision and digest are the ledger's; entity free; type and sink open; a free slot; tries left; no "
        "cancel asked for; and, where an earlier attempt is doubtful, the sink has a version guard, or enforces that attempt's "
        "key inside its horizon, or a person accepted the risk for this one admission",
    ),
    _row(
        (_Q, _RW),
        (_NA,),
        (_CALLER, _PERSON, _WORKER),
        EventKind.NOT_APPLICABLE,
        "cancelled, or superseded (an older version is never admitted after a newer one was), and every attempt ended not_sent, "
        "temporary, permanent, closed, or there was none",
    ),
    _row(
        (_Q, _RW),
        (_QU,),
        (_WORKER, _RELAY, _SWEEPER),
        EventKind.QUARANTINED,
        "cannot be decoded or sent, no tries left, or its record held past its deadline; no earlier attempt doubtful",
    ),
    _row(
        (_Q, _RW),
        (_AC,),
        (_WORKER, _RELAY, _SWEEPER),
        EventKind.AWAITING_CONFIRMATION,
        "an earlier attempt is doubtful, and: not harmless to send again, or no tries left, or it cannot be decoded or sent, or "
        "the entity has moved on, or a cancel was asked for: a probe instead of a send",
    ),
    _row((_R,), (_OK, _CF), (_WORKER,), EventKind.RESULT_SAVED, "receipt saved; confirmed where the receipt is the evidence"),
    _row(
        (_R,),
        (_RW,),
        (_WORKER,),
        EventKind.RETRY_SCHEDULED,
        "temporary, tries left: due time and cause saved; or not_sent: due now",
    ),
    _row(
        (_R,),
        (_RW,),
        (_SWEEPER,),
        EventKind.RETRY_SCHEDULED,
        "lease over, effect inside the ledger's own transaction: no commit, no effect",
    ),
    _row(
        (_R,),
        (_AC,),
        (_WORKER, _SWEEPER),
        EventKind.AWAITING_CONFIRMATION,
        "uncertain (timeout after sending, lost connection, unclassified exception, lease over); or permanent or last temporary "
        "while an earlier attempt is doubtful",
    ),
    _row((_R,), (_QU,), (_WORKER,), EventKind.QUARANTINED, "permanent, or tries used up; no earlier attempt doubtful"),
    _row(
        (_AC, _RW, _Q),
        (_OK, _CF),
        (_WORKER, _CALLBACK, _CALLER),
        EventKind.RESULT_SAVED,
        "late receipt of the latest attempt, of the current revision; for done elsewhere the receipt that was recorded",
    ),
    _row(
        (_AC,),
        (_RW,),
        (_WORKER,),
        EventKind.RETRY_SCHEDULED,
        "late temporary or not_sent of the latest attempt: as from running",
    ),
    _row(
        (_AC,),
        (_QU,),
        (_WORKER,),
        EventKind.QUARANTINED,
        "late permanent or last temporary of the latest attempt: as from running",
    ),
    _row(
        (_AC,),
        (_AC,),
        (_WORKER,),
        EventKind.AWAITING_CONFIRMATION,
        "late permanent or last temporary of the latest attempt while an earlier one is doubtful: as from running",
    ),
    _row((_AC, _OK), (_CF,), (_RECONCILER,), EventKind.CONFIRMED, "correct"),
    _row(
        (_AC, _OK),
        (_NA,),
        (_RECONCILER,),
        EventKind.NOT_APPLICABLE,
        "the sink shows a newer version that is ours (overtaken: its own effect may have existed); or, before any requeue, "
        "missing (proved) and a cancel was asked for or a newer version of the entity exists (cancelled, superseded: no effect)",
    ),
    _row(
        (_AC,),
        (_RW,),
        (_RECONCILER,),
        EventKind.REQUEUED,
        "missing (proved), harmless to send again (as in the row to running), tries left, last answer not permanent, the head of "
        "a Strict entity has not passed it",
    ),
    _row(
        (_AC,),
        (_RW,),
        (_SWEEPER,),
        EventKind.RETRY_SCHEDULED,
        "no probe declared, the sink enforces the key inside its horizon, tries left, not money: the same saved bytes under the "
        "same key; its answer settles both attempts",
    ),
    _row(
        (_AC,),
        (_QU,),
        (_RECONCILER,),
        EventKind.QUARANTINED,
        "missing (proved) by a probe after the last attempt, and the last answer was permanent or no tries are left; the "
        "attempts are closed",
    ),
    _row(
        (_AC, _OK),
        (_MR,),
        (_RECONCILER,),
        EventKind.MANUAL_REVIEW,
        "divergent; ambiguous past its count of probes or its deadline; missing and not harmless; missing against a saved "
        "receipt; no probe declared; money or hard to repeat; not enforced",
    ),
    _row(
        (_AC, _OK),
        (_CG,),
        (_RECONCILER,),
        EventKind.COMPENSATING,
        "divergent (the effect is proved to exist), policy says compensate, enforced",
    ),
    _row((_AC,), (_MR,), (_PERSON,), EventKind.MANUAL_REVIEW, "taken for decision"),
    _row((_MR,), (_CF,), (_PERSON,), EventKind.CONFIRMED, _ACT),
    _row(
        (_MR,),
        (_RW,),
        (_PERSON,),
        EventKind.REQUEUED,
        f"{_ACT}; the accepted risk is recorded and used up by one admission; grants at least one try; never for a Strict "
        "operation that the head has passed",
    ),
    _row((_MR,), (_CG,), (_PERSON,), EventKind.COMPENSATING, f"{_ACT}; {_PROBED}"),
    _row((_MR,), (_NA,), (_PERSON,), EventKind.NOT_APPLICABLE, f"{_ACT}; {_PROBED}; past the absence wait"),
    _row(
        (_CG,),
        (_CD,),
        (_RECONCILER,),
        EventKind.COMPENSATED,
        "the linked operation is final with its effect (confirmed, or succeeded where that is final)",
    ),
    _row((_CG,), (_MR,), (_RECONCILER,), EventKind.MANUAL_REVIEW, "the linked operation ended in any other way"),
    _row(
        (_QU,),
        (_Q,),
        (_PERSON,),
        EventKind.REPLAYED,
        "payload fixed (new revision), or consumer updated and named, or forced: new tries; every earlier attempt closed or "
        'certainly not applied, or else "look first" is the only act',
    ),
    _row((_QU,), (_AC,), (_PERSON,), EventKind.AWAITING_CONFIRMATION, '"look first"'),
    _row((_QU,), (_NA,), (_PERSON,), EventKind.NOT_APPLICABLE, "cancelled with a reason"),
)

_EDGES: Final = frozenset(
    (source, target, actor) for row in TABLE for source in row.sources for target in row.targets for actor in row.who
)


def is_edge(source: State | None, target: State, who: Actor) -> bool:
    """Whether some row lets `who` move an operation from `source` to `target`."""
    return (source, target, who) in _EDGES


def check_move(source: State | None, target: State, who: Actor) -> None:
    """Raise ValueError for a transition that no row has: a mistake in the program, never a user's."""
    if not is_edge(source, target, who):
        raise ValueError(f"no row of the table lets the {who} move {source or 'nothing'} to {target}")


def exits(source: State | None) -> frozenset[State]:
    """Where an operation can go from there; empty for a final state."""
    return frozenset(target for row in TABLE if source in row.sources for target in row.targets)


def is_reported(target: State) -> bool:
    """Whether a transition writes a state record: every one except into queued or running."""
    return target is not State.QUEUED and target is not State.RUNNING
