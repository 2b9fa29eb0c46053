"""A rate that many processes share: how many calls one of them may take now. Pure; time is handed in.

One instant says up to where the rate is spent: a block of N tokens moves it by N over the rate. Nothing is saved up beyond a
short burst, and a block is good for a moment only, so that in any window no more is sent than the rate allows, plus those two.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from math import floor
from typing import Final, NamedTuple

#: What may be saved up while nobody sends; at least one token.
BURST: Final = timedelta(milliseconds=200)
#: How long a block may be used after it was taken; what is left of it then is lost.
BLOCK_LIFE: Final = timedelta(milliseconds=200)
#: One whole token in floats: a third of a second times three is one.
_WHOLE: Final = 1e-6
_YEAR: Final = 366 * 86_400.0  #: seconds; a rate of less than one a year is none
_SLOWEST: Final = 1e-12


class Block(NamedTuple):
    """What was taken."""

    tokens: int
    spent_until: datetime  #: to be kept for whoever asks next
    next_in: timedelta  #: when one more token is there; zero: at once


def take(spent_until: datetime | None, per_second: float, wanted: int, now: datetime) -> Block:
    """At most `wanted` tokens. `spent_until` is None where nothing was ever taken."""
    one = timedelta(seconds=min(1 / max(per_second, _SLOWEST), _YEAR))
    earliest = now - max(BURST, one)
    start = earliest if spent_until is None else max(spent_until, earliest)
    there = max(floor((now - start).total_seconds() * per_second + _WHOLE), 0)
    count = min(there, max(wanted, 0))
    spent = start + timedelta(seconds=count / per_second) if count else start
    return Block(count, spent, max(spent + one - now, timedelta(0)))
