"""What a type's declaration means, as facts in words: what is seen, how long is waited, in which order, how often, and then what.

Reads declarations and settings only. It must never call what a user declared, nor show a path of this machine.
"""

from __future__ import annotations

from dataclasses import fields
from datetime import timedelta
from typing import Any

from counterfoil.core import riskiness
from counterfoil.core.annotations import shape_of
from counterfoil.core.effect import DoneElsewhere, Effect, InLedger
from counterfoil.core.operation_type import OperationType
from counterfoil.core.order import LatestWins, Strict, Unordered
from counterfoil.core.policy import Remedy
from counterfoil.core.proof import RECEIPT, ProbeBatch, Proof
from counterfoil.core.records import FOREVER
from counterfoil.core.sink import ByKey, ByNature
from counterfoil.settings import Settings

Facts = list[tuple[str, str]]

PERSON = "a person decides"
ACTS = {
    Remedy.REQUEUE: "sent again, where a repeat is harmless and tries are left; else a person decides",
    Remedy.COMPENSATE: "the operation that `compensate` asks for; where it asks for none, a person decides",
    Remedy.REVIEW: PERSON,
}


def span(time: timedelta) -> str:
    """A duration in words that need no unit beside them."""
    if time is FOREVER or time == FOREVER:
        return "for ever"
    seconds = time.total_seconds()
    for unit, name in ((86400, "days"), (3600, "hours"), (60, "minutes")):
        if seconds >= 2 * unit and seconds % unit == 0:
            return f"{int(seconds // unit)} {name}"
    return f"{seconds:g} seconds"


def idempotency(of: OperationType[Any]) -> str:
    """What a repeat does."""
    if of.sink is None:
        return "one commit"
    match of.sink.idempotency:
        case ByKey(horizon):
            words = f"by key, {span(horizon)}"
        case ByNature():
            own = isinstance(of.order, Unordered) and of.order.entity is None
            words = "by nature" if own else "by nature, at an address that operations may share"
        case _:
            words = "none"
    return f"{words}; guards versions" if of.sink.version_guard else words


def effect(of: OperationType[Any]) -> Facts:
    """What is called, where, and what must be seen afterwards."""
    facts = [("payload", f"{of.payload.__name__}: {_names(of.payload)}"), ("contract", of.contract.name)]
    match of.effect:
        case Effect() as call:
            facts.append(("where", f"sink {call.sink.name}, {'awaited' if call.is_async else 'on a thread'}"))
        case DoneElsewhere() as job:
            facts.append(("where", f"sink {job.sink.name}, by another program, which records its outcome"))
        case InLedger():
            facts.append(("where", "rows in the ledger's database, in the transaction that saves the outcome"))
        case batch:
            facts.append(("where", f"rows in the ledger's database, up to {batch.size} operations in one transaction"))
    if isinstance(of.proof, Proof) and (shape := shape_of(of.proof)) is not None:
        facts.append(("compared at the sink", f"{_names(shape)}, and the version where both sides have one"))
    return facts


def decides(of: OperationType[Any], settings: Settings) -> Facts:
    """Who decides what after each verdict."""
    risky = of.policy.risk.money or of.policy.risk.hard_to_repeat
    facts = [("owner", of.owner)]
    if of.still_wanted is not None:
        facts.append(("before each send", "the type's `still_wanted` is asked whether it is cancelled or superseded"))
    if isinstance(of.proof, Proof):
        facts.append(("correct", "confirmed, by the ledger"))
        facts.append(("missing", ACTS[of.policy.missing]))
        facts.append(("divergent", PERSON if risky else ACTS[of.policy.divergent]))
        facts.append(("ambiguous, or no answer by the deadline", PERSON))
        facts.append(("a newer version that is ours", "closed as overtaken, by the ledger"))
    elif of.in_ledger:
        facts.append(("an answer that was lost", "impossible: row and outcome are one commit"))
    elif settings.rules_of(of).resendable:
        again = "the same bytes are sent again under the same key, while the sink keeps it"
        facts.append(("an answer that was lost", f"{again}; then {PERSON}"))
    else:
        facts.append(("an answer that was lost", f"{PERSON}: nothing can be asked"))
    return facts


def evidence(of: OperationType[Any]) -> Facts:
    """What is kept as the proof."""
    facts = [("proof", riskiness.how_proved(of))]
    if isinstance(of.proof, Proof):
        confirm = of.proof.confirm
        if isinstance(of.proof.probe, ProbeBatch):
            facts.append(("targets a probe", f"at most {of.proof.probe.size}"))
        facts.append(("share that is probed", f"{confirm.share:.0%} of succeeded operations; for the rest succeeded is final"))
        facts.append(("answers that make absent missing", str(confirm.probes)))
        facts.append(("business key", "the entity" if of.proof.business_key is None else "of its own"))
        facts.append(("inventory", "none: no sweep" if of.proof.inventory is None else "listed, for sweeps"))
    elif of.proof is RECEIPT and not of.in_ledger:
        facts.append(("kept", "the receipt: remote id, version, the sink's time and ours"))
    return facts


def windows(of: OperationType[Any], settings: Settings) -> Facts:
    """Every wait, and its end."""
    rules = settings.rules_of(of)
    facts: Facts = []
    if isinstance(of.effect, Effect):
        facts.append(("time-out of a call", span(of.effect.timeout)))
    if isinstance(of.effect, DoneElsewhere):
        facts.append(("outcome within", span(of.effect.outcome_within)))
    if of.sink is not None:
        facts.append(("a request may still be applied", f"{span(of.sink.request_life)} after we stopped waiting"))
        facts.append(("read lag", span(of.sink.read_lag)))
        facts.append(("absent is not missing before", f"{span(rules.absence_wait)} after the end of the attempt's run time"))
        if rules.keyed:
            facts.append(("the sink keeps a key", "for ever" if rules.horizon is None else span(rules.horizon)))
    if isinstance(of.proof, Proof):
        facts.append(("first probe", f"{span(of.proof.confirm.window)} after the effect"))
        facts.append(("a person sees it", f"{span(of.proof.confirm.deadline)} after the effect, if nothing proved it"))
    facts.append(("a case is reviewed within", span(settings.review_within)))
    return facts


def order(of: OperationType[Any]) -> Facts:
    """What makes two calls one operation, and which wait."""
    match of.order:
        case LatestWins():
            return [
                ("order", "the latest version wins; an older one that was not sent is superseded"),
                ("identity", "entity and version"),
            ]
        case Strict():
            return [("order", "strict: each waits for the one before of its entity"), ("identity", "of its own")]
        case Unordered(_, entity):
            return [("order", "none"), ("identity", "of its own"), ("entity", "the identity" if entity is None else "of its own")]


def retry(of: OperationType[Any]) -> Facts:
    """How often, how fast, and what is never tried again."""
    effect = of.effect
    errors = effect.errors
    facts: Facts = []
    if not isinstance(effect, DoneElsewhere):
        wait = effect.retry.backoff
        facts.append(("tries", f"at most {effect.retry.max_tries}, the first and those of crashes included"))
        facts.append(("waits", f"{span(wait.first)}, doubled up to {span(wait.cap)}, with jitter"))
    facts.append(("a repeat at the sink", idempotency(of)))
    facts.append(("tried again", ", ".join(kind.__name__ for kind in errors.temporary) or "what the effect raises as Temporary"))
    never = [kind.__name__ for kind in errors.permanent] + list(errors.codes)
    facts.append(("never tried again", ", ".join(never) or "no code is declared"))
    if of.sink is not None:
        facts.append(
            ("anything else", "uncertain: looked up before it is sent again" if isinstance(of.proof, Proof) else "uncertain")
        )
    return facts


def remedies(of: OperationType[Any]) -> Facts:
    """What may be done about a verdict, and when the type falls back to observing."""
    policy = of.policy
    applied = ", ".join(riskiness.enforced(of))
    return [
        ("risk", ", ".join(riskiness.risk_of(of)) or "none declared"),
        ("missing", policy.missing.value),
        ("divergent", policy.divergent.value),
        ("applied without a person", f"confirm, close, {applied}" if applied else "confirm and close only: it observes"),
        (
            "falls back to observing",
            f"past {policy.fuse.not_correct:.0%} of verdicts not correct, or {policy.fuse.requeues_an_hour} requeues an hour",
        ),
    ]


def _names(of: type) -> str:
    return ", ".join(one.name for one in fields(of)) or "no field"
