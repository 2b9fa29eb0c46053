"""What comes next of an operation that awaits confirmation: core's word for it, asked with the type's declaration, as a sentence.

Where the type is not declared here it says so and guesses nothing.
"""

from sqlalchemy import Connection

from counterfoil.core.decisions import Ahead, ahead
from counterfoil.core.states import State
from counterfoil.ledger.reading import Whole, standing_at
from counterfoil.settings import Settings, SettingsError, load_operations

#: `{due}` is its due time.
SENTENCES = {
    Ahead.OUTCOME: "the outcome, which the program that acts records with `record_outcome`",
    Ahead.PROBE: "a probe of its sink; this release has no reconciler to make it, so look at the sink yourself",
    Ahead.SENT_AGAIN: "proof: it is sent again under the same key at {due}, and the answer settles both attempts",
    Ahead.PERSON: "a person, who must look at the sink: nothing probes it, and nothing is sent again by itself",
    None: "proof: nobody knows yet whether the effect exists; its type is not declared here, and what comes next depends on it",
}


def ahead_of(connection: Connection, settings: Settings, one: Whole) -> Ahead | None:
    """What comes next; None where that is not told: in another state, or without the type's declaration."""
    if one.state != State.AWAITING_CONFIRMATION or one.due_at is None:
        return None
    try:
        declared = load_operations(settings.operations).find(one.type)
    except SettingsError:
        return None
    if declared is None:
        return None
    return ahead(settings.rules_of(declared), standing_at(connection, one.number), due=max(one.due_at, one.now))
