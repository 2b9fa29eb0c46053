"""The roads out of the outbox, and the topics at their ends: the only place in which any of their names is spelt.

A road is `state`, `dead_letter`, `command.TYPE` or `retry.TYPE`; the first word is the kind of the outbox row. A ledger's topics
bear its name. What is spelt here is on disk and on brokers: it never changes.
"""

from __future__ import annotations

from typing import Final

__all__ = [
    "COMMAND",
    "DEAD_LETTER",
    "KINDS",
    "KIND_OF",
    "RETRY",
    "STATE",
    "TO_WORKERS",
    "around_type",
    "arrival_topic",
    "road_of",
    "topic_of",
]

STATE: Final = "state"
DEAD_LETTER: Final = "dead_letter"
COMMAND: Final = "command"
RETRY: Final = "retry"
KINDS: Final = (COMMAND, RETRY, STATE, DEAD_LETTER)
#: The kinds that workers take, each with the last word of its topics: by that word the ledger names the road a record came by.
TO_WORKERS: Final = {COMMAND: "commands", RETRY: "retry"}
#: The kind of the rows on a topic, by that word.
KIND_OF: Final = {word: kind for kind, word in TO_WORKERS.items()}


def road_of(kind: str, type_name: str) -> str:
    """The road of an outbox row."""
    return f"{kind}.{type_name}" if kind in TO_WORKERS else kind


def topic_of(ledger: str, road: str) -> str:
    """The topic at the end of a road."""
    if road == STATE:
        return f"{ledger}.state"
    if road == DEAD_LETTER:
        return f"{ledger}.dead-letters"
    kind, _, type_name = road.partition(".")
    return arrival_topic(ledger, type_name, TO_WORKERS[kind])


def arrival_topic(ledger: str, type_name: str, word: str) -> str:
    """The topic that a worker received a record from, by its last word."""
    before, after = around_type(ledger, KIND_OF[word])
    return f"{before}{type_name}{after}"


def around_type(ledger: str, kind: str) -> tuple[str, str]:
    """What stands before and behind the type's name in the topics of a kind that workers take."""
    return f"{ledger}.", f".{TO_WORKERS[kind]}"
