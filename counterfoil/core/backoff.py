"""How long a retry waits: doubled from the first wait up to a cap, with full jitter.

Never draws the jitter itself and never overflows: 1,024 doublings of a float are infinity, and of a timedelta an exception.
"""

from __future__ import annotations

from typing import Final

#: Beyond this no pair of waits that a float can hold is still below its cap; doubling stops here.
_DOUBLINGS: Final = 62
#: The shortest wait, seconds: a jitter close to one must not become a due time of now.
_SHORTEST: Final = 0.001


def ceiling(tries: int, first: float, cap: float) -> float:
    """The longest wait, in seconds, after `tries` tries: 0 and 1 give `first`, each further one doubles it up to `cap`."""
    doublings = min(max(tries - 1, 0), _DOUBLINGS)
    return min(first * (1 << doublings), cap)


def delay(tries: int, first: float, cap: float, jitter: float) -> float:
    """The wait in seconds: above zero, at most `cap`, spread evenly by `jitter` in [0, 1).

    Full jitter, because a thousand operations that failed together must not come back together (D65).
    """
    longest = ceiling(tries, first, cap)
    return max(longest * (1.0 - jitter), min(_SHORTEST, longest))
