"""Which records are suspected of killing the process that decodes them, and when one of them is given up (S23).

A process that dies while it decodes leaves behind which offsets of the partition it had begun. They are decoded one by one from
then on, so that the next death names its record. It decides by what is handed in, and must never accuse a record of a death in
which it was not being decoded.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

#: Deliveries of a record that killed the process, after which it is not decoded any more.
MOST_KILLS = 3
#: Of these, so many must have been of the record alone: among others nobody knows which one it was.
ALONE = 2


@dataclass(frozen=True, slots=True)
class Suspicion:
    """What is held against the records of one partition. Numbers are offsets and worker sessions, `last` included."""

    first: int = 0
    last: int = -1  #: below `first`: nobody is suspected
    together: int | None = None  #: the session that died last with several of them in hand
    named: int | None = None  #: the record that sessions died with alone
    alone: tuple[int, ...] = ()  #: those sessions

    def covers(self, offset: int) -> bool:
        """Whether the record must be decoded alone."""
        return self.first <= offset <= self.last

    def accusers(self, offset: int) -> tuple[int, ...]:
        """The sessions that died with this record in hand, as far as that can be said of this one."""
        if offset != self.named:
            return ()
        return self.alone if self.together is None else (self.together, *self.alone)

    def guilty(self, offset: int) -> bool:
        """Whether it is not decoded any more: it killed often enough, and often enough alone."""
        return len(self.accusers(offset)) >= MOST_KILLS and len(self.alone) >= ALONE

    def acquitted(self, sessions: frozenset[int]) -> Suspicion:
        """Without these sessions: they live, or ended in order."""
        together = None if self.together in sessions else self.together
        return replace(self, together=together, alone=tuple(one for one in self.alone if one not in sessions))


INNOCENT = Suspicion()


def after_death(was: Suspicion, first: int, last: int, session: int) -> Suspicion:
    """A process died while it decoded the records `first` to `last`, and had not finished the last of them.

    Records are decoded in order: where `first` is past the suspects, they all were decoded or given up before.
    """
    if first > was.last:
        was = INNOCENT
    low, high = (min(was.first, first), max(was.last, last)) if was.last >= was.first else (first, last)
    if first < last:
        return replace(was, first=low, last=high, together=session)
    together = was.together if was.covers(first) else None
    alone = (*was.alone, session) if was.named == first else (session,)
    return Suspicion(low, high, together, first, alone)
