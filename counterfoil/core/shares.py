"""A number of slots that many sessions share: how many of them are one session's now. Pure.

The sum of all shares never passes the total, whatever each of them last knew: a share only grows into what nobody holds, and a
session that holds more than is fair gives it back as its calls end (L3).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Share(NamedTuple):
    """One session at one sink."""

    session: int
    slots: int  #: that it may use until it asks again
    in_use: int  #: calls in flight
    wanted: int  #: calls that it would make if it could, those in flight included


def share(total: int, mine: Share, others: Sequence[Share], turn: int) -> int:
    """The slots of `mine` from now on: its fair part, as far as nobody else holds it, and never less than what it has in use.

    `turn` rises with time: where there are fewer slots than sessions, whose turn it is changes with it.
    """
    everybody = sorted((mine, *others))
    parts = fair(total, [one.wanted for one in everybody], turn)
    held = sum(one.slots for one in others)
    return max(mine.in_use, min(parts[everybody.index(mine)], total - held))


def fair(total: int, wanted: Sequence[int], turn: int) -> list[int]:
    """The parts of each: as even as the wishes allow; what nobody wishes for is dealt out evenly too, to be there when needed."""
    parts = [0] * len(wanted)
    left = _deal(total, parts, wanted, turn)
    _deal(left, parts, [total] * len(wanted), turn)
    return parts


def _deal(left: int, parts: list[int], wanted: Sequence[int], turn: int) -> int:
    """Deal out evenly to those who have less than they want; answers what nobody wanted."""
    while hungry := [place for place, part in enumerate(parts) if part < wanted[place]]:
        each = left // len(hungry)
        if each == 0:
            for step in range(left):
                parts[hungry[(turn + step) % len(hungry)]] += 1
            return 0
        for place in hungry:
            given = min(each, wanted[place] - parts[place])
            parts[place] += given
            left -= given
    return left
