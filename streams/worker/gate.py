"""The gate of one sink inside one worker: slots, tokens and the breaker, as the ledger last granted them. Counts only.

Of a type that is held to less than its sink there is a second gate, behind the sink's. It talks to nobody; times are `boottime`.
"""

from __future__ import annotations

from datetime import timedelta

from counterfoil.core.breaker import Heard, Position, Sign
from counterfoil.core.sink import Limits
from counterfoil.core.tokens import BLOCK_LIFE
from counterfoil.ledger.limits import Ask, Granted, Key
from counterfoil.streams.worker.hearing import Hearing

#: Seconds after which slots that were not there are asked for again.
SLOTS_AGAIN = 0.25
#: Seconds for which tokens may be used whatever their question took: a slow ledger must not make each block useless.
USE_WITHIN = 0.05


class Gate:
    """Guarded by whoever owns it."""

    def __init__(self, key: Key, limits: Limits, probe_within: float) -> None:
        self.key = key
        self.limits = limits
        self.probe_within = probe_within  # seconds: longer than any call of it takes
        self.in_use = 0
        self.hearing = Hearing()
        self.tripped = False  # enough was heard here: nothing more is sent until the ledger has spoken
        self.again_at = 0.0  # before that it is useless to ask for more
        self._slots = 0
        self._concurrency = limits.concurrency  # of all workers
        self._tokens: int | None = 0
        self._tokens_until = 0.0
        self._position = Position.CLOSED
        self._probe_until: object = None  # which probe is ours
        self._probes = 0  # calls that may still probe
        self._probing: int | None = None  # the operation whose call probes
        self._probed: Sign | None = None  # what it came to

    @property
    def shut(self) -> bool:
        """Whether the sink counts as down: nothing is sent but a probe."""
        return self.tripped or self._position is not Position.CLOSED

    @property
    def refuses(self) -> bool:
        """Whether what is admitted may not be sent any more."""
        return self.tripped or (self._position is not Position.CLOSED and self._probe_until is None)

    def room(self, now: float) -> int:
        """How many calls may be admitted now."""
        if self.tripped or self._position is Position.OPEN:
            return 0
        room = self._slots - self.in_use
        if self._tokens is not None:
            room = min(room, self._tokens if now < self._tokens_until else 0)
        return max(min(room, self._probes) if self.shut else room, 0)

    def lacks(self, now: float) -> bool:
        """Whether slots or tokens, and nothing else, are missing."""
        if self.shut:
            return False
        return self._lacks_tokens(now) or (self._slots <= self.in_use and self._slots < self._concurrency)

    def starves(self, now: float) -> bool:
        """Whether it is not this worker's turn: no slot at all, or no token."""
        return self._slots == 0 or self._lacks_tokens(now)

    def _lacks_tokens(self, now: float) -> bool:
        return self._tokens is not None and (self._tokens == 0 or now >= self._tokens_until)

    def take(self, count: int) -> None:
        self.in_use += count
        self._spend(count)

    def give_back(self, count: int) -> None:
        """So many were taken and not needed."""
        self.in_use -= count
        self._spend(-count)

    def _spend(self, count: int) -> None:
        if self._tokens is not None:
            self._tokens -= count
        if self._position is Position.HALF_OPEN:
            self._probes = min(self._probes - count, 1)

    def admitted(self, number: int) -> None:
        """An attempt was admitted: while the breaker is half open it is the probe."""
        if self._position is Position.HALF_OPEN and self._probe_until is not None:
            self._probing = number

    def heard(self, number: int, sign: Sign, after: int) -> bool:
        """An answer came; True where the ledger should know of it at once."""
        if number == self._probing:
            self._probing, self._probed = None, sign
            return True
        if self._position is not Position.CLOSED:
            return False  # its call began before the breaker opened
        self.hearing.note(number, sign)
        self.tripped = self.hearing.failing >= after
        return self.tripped

    def ask(self, waiting: int, now: float) -> Ask:
        """What the ledger is told and asked."""
        heard = self.hearing.tell()
        probe = Heard(heard.failures, heard.alive, self._probed)
        limits, key = self.limits, self.key
        tokens = waiting if self._lacks_tokens(now) else 0
        wanted = self.in_use + waiting
        within = timedelta(seconds=self.probe_within) if waiting else None
        return Ask(key, limits.concurrency, limits.per_second, self.in_use, wanted, tokens, probe, within)

    def granted(self, granted: Granted, session: int, asked_at: float, now: float) -> None:
        """The ledger's answer. `asked_at` is from before the question: what was granted is never older than that."""
        self._slots, self._concurrency = granted.slots, granted.concurrency
        if granted.tokens is None:
            self._tokens = None
        elif granted.tokens or self._tokens is None or now >= self._tokens_until:
            self._tokens, self._tokens_until = granted.tokens, max(asked_at + BLOCK_LIFE.total_seconds(), now + USE_WITHIN)
        lacks_tokens = self._lacks_tokens(now)
        self.again_at = now + (granted.next_token.total_seconds() if lacks_tokens else SLOTS_AGAIN)
        self._take_position(granted, session)

    def _take_position(self, granted: Granted, session: int) -> None:
        breaker = granted.breaker
        if breaker.position is Position.CLOSED and self._position is not Position.CLOSED:
            self.hearing.forget()
        self.tripped = False
        ours = breaker.until if breaker.position is Position.HALF_OPEN and breaker.prober == session else None
        if ours is None or ours != self._probe_until:
            self._probes, self._probing, self._probed = int(ours is not None), None, None
        self._probe_until = ours
        self._position = breaker.position
