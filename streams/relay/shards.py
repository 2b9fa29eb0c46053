"""Which shards of the outbox this relay publishes: its fair share of the 64, by lease, with an epoch for each.

Any number of relays share them without talking to each other: the ledger's rows say who owns what. A relay sends only while
its own clock, which also counts suspension, says that its lease cannot be over. It never sends for a shard that it has begun to
give back.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import timedelta

from sqlalchemy import Connection, Engine

from counterfoil.core.events import LogEvent
from counterfoil.core.shards import SHARDS
from counterfoil.ledger import relaying
from counterfoil.ledger.engine import in_transaction
from counterfoil.ledger.sessions import close_session, heartbeat, open_session
from counterfoil.streams.clock import boottime
from counterfoil.telemetry import alarm, log

NOTHING = timedelta(0)


def fair_share(live: int) -> int:
    """How many shards each of so many relays may own: together they can own all of them."""
    return -(-SHARDS // max(1, live))


def surplus(held: Collection[int], share: int) -> list[int]:
    """The shards that one who holds these gives back: the highest ones beyond its share."""
    return sorted(held)[share:]


class Shards:
    """This relay's session and the shards that it owns. One thread uses it, but `alive` may be asked by any."""

    def __init__(self, name: str, terms: relaying.Terms, *, clock: Callable[[], float] = boottime) -> None:
        self.name, self.terms, self._clock = name, terms, clock
        self.session: int | None = None
        self.epochs: dict[int, int] = {}  #: of the shards that are ours
        self.leaving: set[int] = set()  #: ours still, but no row of theirs is sent any more
        self._alive_until = 0.0

    @property
    def alive(self) -> bool:
        """Whether our lease can still be relied on."""
        return self._clock() < self._alive_until

    def sendable(self) -> list[int]:
        """The shards that may be read and sent now."""
        return [shard for shard in self.epochs if shard not in self.leaving] if self.alive else []

    def renew(self, engine: Engine, busy: Collection[int]) -> None:
        """Renew session and shards, give back what is too much, take what is free. `busy`: shards with rows in flight.

        Nothing counts before the commit, and the lease counts from before the question was asked.
        """
        asked_at = self._clock()
        renewal = in_transaction(engine, lambda connection: self._renewal(connection, busy))
        self._tell(renewal)
        self.session, self.epochs, self.leaving = renewal.session, renewal.epochs, renewal.leaving
        self._alive_until = asked_at + self.terms.lease.total_seconds()

    def _renewal(self, connection: Connection, busy: Collection[int]) -> "_Renewal":
        session = self._session(connection)
        held = relaying.renew_shards(connection, session, self.terms)
        share = fair_share(relaying.live_relays(connection))
        leaving = self.leaving & held.keys()
        leaving |= set(surplus(held.keys() - leaving, share))
        free = leaving - set(busy)
        if free:
            relaying.release_shards(connection, session, free, NOTHING)
            leaving -= free
            held = {shard: epoch for shard, epoch in held.items() if shard not in free}
        taken: dict[int, int] = {}
        if share > len(held) and not free and not leaving:
            taken = relaying.claim_shards(connection, session, share - len(held), self.terms)
        return _Renewal(session, held | taken, leaving, given=len(free), taken=len(taken))

    def leave(self, engine: Engine, unresolved: Collection[int]) -> None:
        """Give everything back at the end; where a send is unresolved, another relay waits one delivery time-out."""
        session = self.session
        if session is None:
            return
        clean = set(self.epochs) - set(unresolved)

        def unit(connection: Connection) -> None:
            relaying.release_shards(connection, session, clean, NOTHING)
            relaying.release_shards(connection, session, set(self.epochs) - clean, self.terms.silence)
            close_session(connection, session)

        self._alive_until = 0.0
        in_transaction(engine, unit)
        self.epochs = {}

    def _session(self, connection: Connection) -> int:
        """Our session; a new one where the lease of the last was over: what nobody has taken meanwhile is still ours."""
        before = self.session
        if before is not None and heartbeat(connection, before, self.terms.lease) is not None:
            return before
        session = open_session(connection, "relay", self.name, self.terms.lease)
        if before is not None:
            relaying.adopt_shards(connection, session, before)
        return session

    def _tell(self, renewal: "_Renewal") -> None:
        if renewal.session != self.session:
            if self.session is not None:
                alarm(LogEvent.LEASE_LOST, session=self.session)
            log(LogEvent.LEASE_TAKEN, session=renewal.session)
        if renewal.given:
            log(LogEvent.SHARDS_GIVEN_BACK, session=renewal.session, shards=renewal.given)
        if renewal.taken:
            log(LogEvent.SHARDS_TAKEN, session=renewal.session, shards=renewal.taken)
        for shard, epoch in self.epochs.items():
            if shard not in self.leaving and not renewal.given and renewal.epochs.get(shard) != epoch:
                alarm(LogEvent.SHARD_LOST, shard=shard, epoch=epoch)


@dataclass(frozen=True)
class _Renewal:
    """What a committed renewal says."""

    session: int
    epochs: dict[int, int]
    leaving: set[int]
    given: int
    taken: int
