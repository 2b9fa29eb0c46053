"""The relay and the topics of a rehearsal, in this process: what the outbox holds is noted as published and handed over in order.

Every record lies in partition 0 of its topic. It must never hand over what is not committed.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import timedelta
from hashlib import sha256
from typing import NamedTuple

from sqlalchemy import Engine

from counterfoil.core.roads import TO_WORKERS, road_of, topic_of
from counterfoil.core.shards import SHARDS
from counterfoil.ledger import acknowledgements, relaying
from counterfoil.ledger.admission import Candidate
from counterfoil.ledger.sessions import open_session

AGES = timedelta(days=36_500)  # nobody takes over from a rehearsal's relay, wherever its clock is moved
READ = 500  #: outbox rows of one read


class Delivered(NamedTuple):
    """One command record."""

    type: str
    topic: str
    value: bytes
    candidate: Candidate


class Delivery:
    """All roads of one rehearsal's ledger."""

    def __init__(self, engine: Engine, ledger: str) -> None:
        self._engine = engine
        self._ledger = ledger
        self._ends: dict[str, int] = {}  # offset of the next record, by topic
        self.waiting: list[Delivered] = []  #: published and not acknowledged, in order
        with engine.begin() as connection:
            self._session = open_session(connection, "relay", "rehearsal", AGES)
            terms = relaying.Terms(AGES, timedelta(0))
            self._epochs = relaying.claim_shards(connection, self._session, SHARDS, terms)

    def publish(self) -> int:
        """Empty the outbox; answers how many rows have left."""
        wanted = relaying.Wanted(dict.fromkeys(sorted(self._epochs), 0), READ, READ, 100_000_000)
        total = 0
        while True:
            with self._engine.begin() as connection:
                rows = relaying.read_waiting(connection, wanted)
                if not rows:
                    return total
                records = [self._appended(row) for row in rows]
                relaying.note(connection, self._session, [noted for noted, _ in records])
            self.waiting += [record for _, record in records if record is not None]
            total += len(rows)

    def acknowledge(self, session: int, finished: Collection[Delivered]) -> None:
        """These need nothing more; a topic is committed up to its first record that does."""
        done = {(one.topic, one.candidate.offset) for one in finished}
        self.waiting = [one for one in self.waiting if (one.topic, one.candidate.offset) not in done]
        commits = {}
        for topic in {one.topic for one in finished}:
            open_ = [one.candidate.offset for one in self.waiting if one.topic == topic]
            commits[topic, 0] = min(open_, default=self._ends[topic])
        with self._engine.begin() as connection:
            acknowledgements.note(connection, session, commits)

    def _appended(self, row: relaying.Waiting) -> tuple[relaying.Noted, Delivered | None]:
        shard, id_, kind, type_, number, _, revision, _, _, value, *_ = row
        topic = topic_of(self._ledger, road_of(kind, type_))
        offset = self._ends.get(topic, 0)
        self._ends[topic] = offset + 1
        noted = relaying.Noted(shard, id_, self._epochs[shard], 0, offset)
        if kind not in TO_WORKERS or number is None or value is None:
            return noted, None
        candidate = Candidate(number, revision, sha256(value).digest(), TO_WORKERS[kind], 0, offset)
        return noted, Delivered(type_, topic, value, candidate)


def by_type(records: Sequence[Delivered]) -> dict[str, list[Delivered]]:
    """The records of each type, in order."""
    found: dict[str, list[Delivered]] = {}
    for one in records:
        found.setdefault(one.type, []).append(one)
    return found
