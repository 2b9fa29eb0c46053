"""Where an operation stands in its entity, in words: what it waits for, and how many wait for it. It names no entity."""

from counterfoil.core.states import EXCEPTIONS, State
from counterfoil.ledger.ordering import MOST_COUNTED, Place

WAITING = {State.QUEUED.value, State.RETRY_WAIT.value}


def before_words(place: Place | None, state: str) -> str | None:
    """What of its entity an operation waits for; None: nothing."""
    if place is None or place.behind is None or state not in WAITING:
        return None
    stands = f"{place.behind}, which is {place.behind_state}"
    if place.behind_state in {one.value for one in EXCEPTIONS}:
        stands += " and waits for a person"
    if not place.strict:
        return f"an older version of its entity, {stands}"
    return f"its turn in its entity: {_count(place.before)} before it, first {stands}"


def behind_words(place: Place | None) -> str:
    """How many operations of the entity wait behind this one; empty: none."""
    if place is None or not place.waiting or place.behind is not None:
        return ""
    return f"{_count(place.waiting)} waiting behind this one"


def _count(count: int) -> str:
    return f"{MOST_COUNTED:,} or more" if count >= MOST_COUNTED else str(count)
