"""What may befall the calls of one `Rehearsal.run`: each fault strikes the first attempt of every operation that is run in it."""

from enum import Enum

__all__ = ["Fault"]


class Fault(Enum):
    """Of several that concern the call, the first strikes the first attempt of a run and the next the one after it.

    An effect in the ledger's own database has no answer that can be lost: of these only a kill and a second delivery concern it.
    """

    BEFORE_SEND = "before_send"  #: the line breaks before the first byte: the effect is not called, which is temporary
    ANSWER_LOST = "answer_lost"  #: the effect is called and its answer never comes: uncertain
    LATE_APPLY = "late_apply"  #: no answer comes, and the effect happens when the clock is moved next: uncertain
    KILLED_BEFORE_SETTLE = "killed_before_settle"  #: the worker dies after the call; the next run has its record again
    DELIVERED_TWICE = "delivered_twice"  #: every record comes a second time

    @property
    def of_call(self) -> bool:
        """Whether it concerns the call of an effect, and not a record."""
        return self is not Fault.DELIVERED_TWICE
