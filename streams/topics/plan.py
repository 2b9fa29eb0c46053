"""`counterfoil topics plan | apply | verify`, and the relay's own look: the declared types' topics held against the brokers'.

Verifying changes nothing, anywhere. A topic's partition count is accepted when it is first applied or, by the relay, first
seen, and compared ever after (D20). Only `apply`, which a person runs, creates topics, alters settings or accepts another count.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from sqlalchemy import Engine

from counterfoil.core.operation_type import Operations
from counterfoil.ledger.engine import ledger_engine
from counterfoil.ledger.partition_counts import accept_partitions, accepted_partitions
from counterfoil.settings import Settings
from counterfoil.streams.topics.admin import TopicAdmin
from counterfoil.streams.topics.wishes import Choice, Flaw, Seen, Step, Wish, changed, flaws, steps, wishes

__all__ = ["Flaw", "Look", "Step", "accept", "apply", "choice_of", "look", "plan", "verify"]


@dataclass(frozen=True)
class Look:
    """One look at the brokers."""

    wanted: list[Wish]
    there: dict[str, Seen]  #: our topics that exist
    known: frozenset[str]  #: every topic of the cluster
    flaws: list[Flaw]


def choice_of(settings: Settings) -> Choice:
    """What the settings say about topics."""
    return Choice(
        settings.ledger,
        settings.topic_partitions,
        settings.topic_replication,
        settings.topic_message_bytes,
        settings.commands_kept,
        settings.dead_letters_kept,
        settings.review_within,
    )


def look(admin: TopicAdmin, choice: Choice, operations: Operations, accepted: Mapping[str, int]) -> Look:
    """Every topic that is wanted, as it is. Raises KafkaException."""
    known, brokers = admin.known()
    wanted = wishes(choice, operations.types, brokers)
    there = admin.with_settings(known, [wish.name for wish in wanted])
    wrong = [flaw for wish in wanted for flaw in flaws(choice, wish, there.get(wish.name), accepted.get(wish.name))]
    return Look(wanted, there, frozenset(known), wrong)


def plan(settings: Settings, operations: Operations) -> list[Step]:
    """What `apply` would do, topic by topic. Raises KafkaException."""
    seen = look(TopicAdmin(settings.brokers, settings.kafka), choice_of(settings), operations, {})
    return steps(seen.wanted, seen.there)


def apply(settings: Settings, operations: Operations) -> list[Step]:
    """Create what is missing, alter what differs, accept the partition counts; answers what was done. Safe to repeat."""
    admin = TopicAdmin(settings.brokers, settings.kafka)
    before = look(admin, choice_of(settings), operations, {})
    done = steps(before.wanted, before.there)
    admin.create(wish for wish in before.wanted if wish.name not in before.there)
    admin.alter({wish.name: changed(wish, before.there[wish.name]) for wish in before.wanted if wish.name in before.there})
    counts = {wish.name: wish.partitions for wish in before.wanted} | {
        name: seen.partitions for name, seen in before.there.items()
    }
    engine = ledger_engine(settings.database, pool_size=1)
    try:
        accept(engine, counts, again=True)
    finally:
        engine.dispose()
    return done


def verify(settings: Settings, operations: Operations) -> list[Flaw]:
    """What is wrong with the topics; empty where nothing is. Raises KafkaException."""
    engine = ledger_engine(settings.database, pool_size=1)
    try:
        with engine.connect() as connection:
            accepted = accepted_partitions(connection)
    finally:
        engine.dispose()
    return look(TopicAdmin(settings.brokers, settings.kafka), choice_of(settings), operations, accepted).flaws


def accept(engine: Engine, counts: Mapping[str, int], *, again: bool = False) -> None:
    """Write down the partition counts of topics; with `again` also of those that have one written down."""
    with engine.begin() as connection:
        accept_partitions(connection, counts, again=again)
