"""What is known of one attempt: the outcomes and the sets that the rules speak of.

An attempt is open, then done, temporary, permanent, not_sent or uncertain; a verdict turns an uncertain one into presumed
absent, applied or closed. This module decides nothing.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class AttemptOutcome(StrEnum):
    """The outcome of one call of the effect, as the ledger stores it."""

    OPEN = "open"  #: admitted, no answer saved
    DONE = "done"  #: its receipt is saved
    TEMPORARY = "temporary"  #: certainly not applied; later may differ
    PERMANENT = "permanent"  #: certainly not applied; repeating cannot help
    NOT_SENT = "not_sent"  #: given back before the first byte; costs no try
    UNCERTAIN = "uncertain"  #: it may have been applied
    PRESUMED_ABSENT = "presumed_absent"  #: a verdict found nothing; its request may still land
    APPLIED = "applied"  #: a receipt came where it could no longer count
    CLOSED = "closed"  #: presumed absent, and absent again after the last attempt: it counts no more


#: Nothing has spoken yet.
UNRESOLVED: Final = frozenset({AttemptOutcome.OPEN, AttemptOutcome.UNCERTAIN})
#: It may have reached the sink, or still may.
DOUBTFUL: Final = UNRESOLVED | {AttemptOutcome.PRESUMED_ABSENT, AttemptOutcome.APPLIED}
#: It certainly did not reach the sink.
NOT_APPLIED: Final = frozenset(
    {AttemptOutcome.TEMPORARY, AttemptOutcome.PERMANENT, AttemptOutcome.NOT_SENT, AttemptOutcome.CLOSED}
)
