"""Why an operation stands where it does: its reason, the last answer where a rule made it count, and where its effect raised.

It reads the events and decides nothing. It must never be given an exception's text.
"""

from typing import Any

from counterfoil.core.events import EventKind
from counterfoil.core.reasons import Reason, reason_advice, reason_sentence
from counterfoil.ledger.reading import History, Whole


def last_cause(one: Whole, history: History) -> str | None:
    """What the last answer said, where the reason is the rule that made it count; a code."""
    moved = [event for event in history.events if event.state == one.state and event.reason == one.reason]
    if moved and (cause := (moved[-1].detail or {}).get("cause")):
        return str(cause)
    if one.reason != Reason.TRIES_USED_UP:
        return None
    retried = [event for event in history.events if event.kind == EventKind.RETRY_SCHEDULED]
    return retried[-1].reason if retried else None


def raised(one: Whole, history: History) -> dict[str, str] | None:
    """Class and place of what the latest attempt raised."""
    for event in reversed(history.events):
        detail = event.detail or {}
        if event.attempt == one.attempt and "error_class" in detail:
            return {"error_class": str(detail["error_class"]), "place": str(detail.get("place", ""))}
    return None


def cause_words(one: Whole, history: History) -> str:
    """The line `cause` of the screen."""
    last = last_cause(one, history)
    told = f"; last: {last} ({reason_sentence(last)})" if last else ""
    return f"{one.reason}: {reason_sentence(one.reason)}{told}"


def raised_words(one: Whole, history: History) -> str:
    """The line `raised` of the screen; empty where the latest attempt raised nothing."""
    found = raised(one, history)
    return " at ".join(part for part in found.values() if part) if found else ""


def cause_data(one: Whole, history: History) -> dict[str, Any]:
    """The object `cause` of --json."""
    last = last_cause(one, history)
    return {
        "reason": one.reason,
        "sentence": reason_sentence(one.reason),
        "advice": reason_advice(one.reason),
        "last": {"reason": last, "sentence": reason_sentence(last)} if last else None,
        "raised": raised(one, history),
    }
