"""A figure of several rounds, and beside it what a plain loop did in the same rounds: read it as a ratio, machines differ."""

from collections.abc import Sequence
from statistics import median
from typing import Any, NamedTuple

Figures = dict[str, dict[str, Any]]


class Round(NamedTuple):
    """Operations a second of ours and of the plain loop, measured one after the other."""

    ours: float
    plain: float


def rate(rounds: Sequence[Round], plain: str) -> dict[str, Any]:
    """The medians; `ratio` is the median of the rounds' own ratios. `plain` says what the other number is."""
    return {
        "per_s": round(median(one.ours for one in rounds)),
        "plain_per_s": round(median(one.plain for one in rounds)),
        "ratio": round(median(one.ours / one.plain for one in rounds), 3),
        "rounds": [round(one.ours) for one in rounds],
        "plain": plain,
    }


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that `share` of all do not exceed."""
    ordered = sorted(values)
    return ordered[max(0, min(len(ordered) - 1, round(share * len(ordered)) - 1))]
