"""The decisions: pure functions from how an operation stands to what is written next.

Each returned `Move` is an edge of `transitions.TABLE` for the actor that asks; nothing here reads a clock, draws a number or
writes anything.
"""

from counterfoil.core.decisions.ahead import Ahead, ahead
from counterfoil.core.decisions.answers import LONGEST_RETRY_AFTER, record_outcome, settle
from counterfoil.core.decisions.callers import cancel, first_due, is_sampled
from counterfoil.core.decisions.moves import Answered, Ask, First, Kept, Move, TooLate
from counterfoil.core.decisions.people import Grounds, No, discard, doubling, edit, look_first, replay
from counterfoil.core.decisions.sweeps import lease_over, no_longer_wanted, not_admissible, send_again, set_aside

__all__ = [
    "LONGEST_RETRY_AFTER",
    "Ahead",
    "Answered",
    "Ask",
    "First",
    "Grounds",
    "Kept",
    "Move",
    "No",
    "TooLate",
    "ahead",
    "cancel",
    "discard",
    "doubling",
    "edit",
    "first_due",
    "is_sampled",
    "lease_over",
    "look_first",
    "no_longer_wanted",
    "not_admissible",
    "record_outcome",
    "replay",
    "send_again",
    "set_aside",
    "settle",
]
