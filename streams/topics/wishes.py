"""The topics that a ledger needs, and where those on a broker differ from that. Pure: plain values in, plain values out.

A wrong topic is named with what is wrong and what to do; nothing is corrected here, and nothing is created by itself.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, NamedTuple

from counterfoil.core.effect import DoneElsewhere
from counterfoil.core.operation_type import OperationType
from counterfoil.core.roads import DEAD_LETTER, STATE, TO_WORKERS, road_of, topic_of

HEADROOM = 65_536  #: bytes that a dead letter's headers may add to its source
POLICY, RETENTION, LARGEST, INSYNC = "cleanup.policy", "retention.ms", "max.message.bytes", "min.insync.replicas"


class Choice(NamedTuple):
    """What an installation chooses for its topics."""

    ledger: str
    partitions: int  #: of each new topic
    replication: int  #: at most one a broker
    message_bytes: int
    commands_kept: timedelta
    dead_letters_kept: timedelta
    review_within: timedelta


@dataclass(frozen=True)
class Wish:
    """One topic as it should be."""

    name: str
    road: str
    partitions: int
    replication: int
    settings: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Seen:
    """One topic as it is. `settings` None: this login, or this broker, does not show them."""

    partitions: int
    replication: int
    settings: Mapping[str, str] | None = None


@dataclass(frozen=True)
class Flaw:
    """What is wrong with a topic. `serious`: rows for it wait, or records may be lost; else somebody should know."""

    topic: str
    code: str
    serious: bool
    what: str
    todo: str


@dataclass(frozen=True)
class Step:
    """What `topics apply` does, or would do, about one topic."""

    topic: str
    act: str  #: create, alter, keep, or by_hand: only a person can do it
    what: str


def wishes(choice: Choice, types: Iterable[OperationType[Any]], brokers: int) -> list[Wish]:
    """Every topic of a ledger with these types, on a cluster of so many brokers."""
    replication = max(1, min(choice.replication, brokers))
    common = {LARGEST: str(choice.message_bytes), INSYNC: str(max(1, replication - 1))}
    roads: list[tuple[str, dict[str, str]]] = [
        (STATE, {POLICY: "compact"}),
        (
            DEAD_LETTER,
            {POLICY: "delete", RETENTION: _ms(choice.dead_letters_kept), LARGEST: str(choice.message_bytes + HEADROOM)},
        ),
    ]
    for one in types:
        if not isinstance(one.effect, DoneElsewhere):  # nothing is ever sent for it
            kept = {POLICY: "delete", RETENTION: _ms(choice.commands_kept)}
            roads += [(road_of(kind, one.name), kept) for kind in TO_WORKERS]
    return [
        Wish(topic_of(choice.ledger, road), road, choice.partitions, replication, common | settings) for road, settings in roads
    ]


def flaws(choice: Choice, wish: Wish, seen: Seen | None, last_partitions: int | None) -> list[Flaw]:
    """What is wrong with one topic; `last_partitions` is its count when it was last accepted."""
    if seen is None:
        return [Flaw(wish.name, "missing", True, "does not exist", "Run `counterfoil topics apply`.")]
    found = []
    if last_partitions is not None and seen.partitions != last_partitions:
        what = f"has {seen.partitions} partitions, and had {last_partitions}: keys have moved"
        todo = "Let the old partitions run empty; then accept it by `counterfoil topics apply`."
        found.append(Flaw(wish.name, "partitions_changed", False, what, todo))
    if seen.replication < wish.replication:
        what = f"is kept {seen.replication} times instead of {wish.replication}"
        found.append(Flaw(wish.name, "replication_low", False, what, "Reassign its replicas."))
    if seen.settings is None:
        found.append(Flaw(wish.name, "unseen", False, "does not show its settings", "Grant DescribeConfigs to this login."))
        return found
    return found + _settings(choice, wish, seen.settings)


def _settings(choice: Choice, wish: Wish, there: Mapping[str, str]) -> list[Flaw]:
    found = []
    fix = "Run `counterfoil topics apply`."
    policy = set(there.get(POLICY, "delete").replace(" ", "").split(","))
    if policy != {wish.settings[POLICY]}:
        what = f"{POLICY} is {','.join(sorted(policy))} instead of {wish.settings[POLICY]}"
        found.append(Flaw(wish.name, "cleanup_policy", True, what, fix))
    if wish.road == DEAD_LETTER and _short(there.get(RETENTION), choice.review_within):
        what = f"{RETENTION} is shorter than the promised review ({choice.review_within.days} days)"
        found.append(Flaw(wish.name, "retention_short", True, what, fix))
    elif RETENTION in wish.settings and _short(there.get(RETENTION), timedelta(milliseconds=int(wish.settings[RETENTION]))):
        found.append(Flaw(wish.name, "retention_short", False, f"{RETENTION} is shorter than the settings say", fix))
    if int(there.get(LARGEST, "1048588")) < int(wish.settings[LARGEST]):
        what = f"{LARGEST} is {there.get(LARGEST)} instead of {wish.settings[LARGEST]}"
        found.append(Flaw(wish.name, "message_bytes_small", wish.road == DEAD_LETTER, what, fix))
    if int(there.get(INSYNC, "1")) < int(wish.settings[INSYNC]):
        what = f"{INSYNC} is {there.get(INSYNC)} instead of {wish.settings[INSYNC]}: an acknowledged record can be lost"
        found.append(Flaw(wish.name, "insync_low", False, what, fix))
    return found


def steps(wanted: Iterable[Wish], there: Mapping[str, Seen]) -> list[Step]:
    """What `apply` would do. It makes topics and alters settings; it never changes a partition count and never deletes."""
    return [step for wish in wanted for step in _steps(wish, there.get(wish.name))]


def _steps(wish: Wish, seen: Seen | None) -> list[Step]:
    if seen is None:
        settings = ", ".join(f"{name}={value}" for name, value in sorted(wish.settings.items()))
        return [Step(wish.name, "create", f"{wish.partitions} partitions, kept {wish.replication} times, {settings}")]
    found = []
    changes = changed(wish, seen)
    if changes:
        told = ", ".join(f"{name}: {(seen.settings or {}).get(name)} → {value}" for name, value in sorted(changes.items()))
        found.append(Step(wish.name, "alter", told))
    if seen.replication < wish.replication:
        found.append(Step(wish.name, "by_hand", f"kept {seen.replication} times instead of {wish.replication}"))
    if seen.settings is None:
        found.append(Step(wish.name, "by_hand", "its settings cannot be seen"))
    return found or [Step(wish.name, "keep", f"{seen.partitions} partitions, kept {seen.replication} times")]


def changed(wish: Wish, seen: Seen) -> dict[str, str]:
    """The settings that differ and are set to what is wished; a longer retention or a larger size is left as it is."""
    if seen.settings is None:
        return {}
    return {name: value for name, value in wish.settings.items() if not _enough(name, seen.settings.get(name), value)}


def _enough(name: str, there: str | None, wished: str) -> bool:
    if there is None or there == wished:
        return there is not None
    if name == RETENTION:
        return not _short(there, timedelta(milliseconds=int(wished)))
    return name in (LARGEST, INSYNC) and int(there) >= int(wished)


def _short(there: str | None, wished: timedelta) -> bool:
    """A retention of -1 is for ever."""
    return there is not None and 0 <= int(there) < int(wished.total_seconds() * 1000)


def _ms(kept: timedelta) -> str:
    return str(int(kept.total_seconds() * 1000))
