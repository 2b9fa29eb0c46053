"""Whether an operation is still wanted, asked of the type's own function before anything is sent.

Never calls that function: who calls it hands the answer in.
"""

from enum import Enum

__all__ = ["Wanted"]


class Wanted(Enum):
    """The answer of `still_wanted`."""

    YES = "yes"
    CANCELLED = "cancelled"  #: nobody wants it any more: as if the caller had cancelled it
    SUPERSEDED = "superseded"  #: something newer stands in its place
