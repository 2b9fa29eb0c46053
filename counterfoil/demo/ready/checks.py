"""What `operations show --json`, the CRM's journal and the topics must say of the three operations. Pure: it only compares."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from counterfoil.sinks.journal import Entry

Shown = Mapping[str, Any]  #: what `operations show --json` printed
Line = Mapping[str, Any]  #: one line of its log


class Check(NamedTuple):
    """One thing that must be so."""

    holds: bool
    sentence: str


class OnTopics(NamedTuple):
    """Where the records of one operation and of a later marker lie: (topic, partition, offset)."""

    of_it: Sequence[tuple[str, int, int]]
    marker: tuple[str, int, int]
    dead_letters: int  #: of the operation


def killed_before_the_commit(shown: Shown, journal: Sequence[Entry]) -> Iterator[Check]:
    """The worker was killed with the result saved and the offset not committed; another one was given the record again."""
    log = _told(shown)
    events = [line["event"] for line in log]
    first_ack = _first(events, "ack_sent")
    saved = _first(events, "result_saved")
    yield Check(shown["state"] == "succeeded" and shown["final"], "it succeeded, and that is final")
    yield Check(0 <= saved < first_ack, "result_saved stands before the first ack_sent")
    again = [event for event in events[saved + 1 :] if event != "published"]
    yield Check(
        again == ["redelivered", "ack_sent"], "the redelivery adds that it was received again and its ack_sent, and nothing else"
    )
    yield Check(events.count("admitted") == 1 and shown["attempt"] == 1, "there was one attempt")
    yield from _one_effect(journal)


def temporary_errors(shown: Shown, journal: Sequence[Entry], failures: int, max_tries: int) -> Iterator[Check]:
    """The CRM answered "later" so many times, then took it."""
    log = _told(shown)
    waits = [line for line in log if line["event"] == "retry_scheduled"]
    admitted = [line for line in log if line["event"] == "admitted"]
    yield Check(shown["state"] == "succeeded" and shown["final"], "it succeeded, and that is final")
    yield Check(len(waits) == failures, f'{failures} answers of "later" are {failures} scheduled retries')
    yield Check(
        len(admitted) == failures + 1 <= max_tries == shown["of"],
        f"attempts are counted and bounded: {failures + 1} of {max_tries}",
    )
    yield Check(
        all("wait" in line["detail"] and line["detail"].get("wait", 0) > 0 for line in waits), "each retry has its due time"
    )
    due = [_at(line).timestamp() + line["detail"].get("wait", 0) for line in waits]
    began = [_at(line).timestamp() for line in admitted[1:]]
    kept = len(due) == len(began) and all(start >= when for start, when in zip(began, due, strict=True))
    yield Check(kept, "no attempt began before its due time")
    yield from _one_effect(journal)


def invalid_payload(shown: Shown, journal: Sequence[Entry], topics: OnTopics) -> Iterator[Check]:
    """The CRM refused it for good; afterwards a marker went the same way."""
    events = [line["event"] for line in _told(shown)]
    yield Check(shown["state"] == "quarantined", "it is quarantined")
    yield Check(
        shown["cause"]["reason"] == "http_422" and bool(shown["cause"]["sentence"]), "its cause is named, with a sentence"
    )
    yield Check(0 <= _first(events, "quarantined") < _first(events, "ack_sent"), "the cause was saved before the first ack_sent")
    yield Check(events.count("admitted") == 1, "there was one attempt")
    yield Check(not any(entry.changed_content for entry in journal), "the sink's journal has no effect of it")
    yield Check(topics.dead_letters == 1, "the dead-letter topic has one record of it")
    topic, partition, offset = topics.marker
    behind = [place for place in topics.of_it if place[:2] != (topic, partition) or place[2] > offset]
    yield Check(not behind, "behind a later marker there is no further record of it, on its topic or the retry topic")
    yield Check(len(topics.of_it) == 1, "it was sent to a worker once")


def _one_effect(journal: Sequence[Entry]) -> Iterator[Check]:
    applied = sum(entry.changed_content for entry in journal)
    yield Check(applied == 1, "the sink's journal has one effect of it")


def _told(shown: Shown) -> list[Line]:
    log: list[Line] = shown["log"]
    return log


def _first(events: Sequence[str], event: str) -> int:
    """Where it stands first; -1 where it is not."""
    return events.index(event) if event in events else -1


def _at(line: Line) -> datetime:
    return datetime.fromisoformat(line["at"])
