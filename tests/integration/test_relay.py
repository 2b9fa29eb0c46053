"""The relay on real PostgreSQL and a real Kafka: what leaves, what is noted, and what a bad row or topic delays."""

from __future__ import annotations

import random
import re
from collections import Counter
from datetime import timedelta
from itertools import product
from uuid import UUID, uuid4

import pytest
from confluent_kafka.cimpl import NewPartitions
from sqlalchemy import text

from counterfoil.ledger.partitions import days_ahead, drop_published
from counterfoil.ledger.relaying import Terms, Wanted, claim_shards, note, read_waiting, renew_shards
from counterfoil.ledger.sessions import open_session
from counterfoil.settings import Settings
from counterfoil.streams.topics.plan import apply, plan, verify
from tests.support.ledgers import Bed
from tests.support.processes import CommandLine
from tests.support.relayed import (
    MODULE,
    OPERATIONS,
    TYPE,
    Relays,
    accept,
    events_of,
    headers_of,
    published,
    put,
    refused,
    report,
    waiting,
)
from tests.support.topics import Topics
from tests.support.waiting import eventually

LETTERS = {"cleanup.policy": "delete", "retention.ms": str(40 * 86_400_000), "max.message.bytes": "2000000"}


@pytest.fixture
def relays(command_line: CommandLine, ledger: Bed, topics: Topics) -> Relays:
    command_line.settings["operations"] = MODULE
    return Relays(command_line, ledger, topics)


def state_of(ledger: Bed, number: int) -> str:
    return str(ledger.one("SELECT state FROM counterfoil.state WHERE number = :number", number=number))


def test_what_the_outbox_holds_leaves_with_its_own_ids_and_is_noted_where_it_is(
    relays: Relays, ledger: Bed, topics: Topics
) -> None:
    """S5, D10: published means that it is in the topic, at the place that the note names."""
    topics.make(TYPE)
    with ledger.engine.begin() as connection:
        operations = [accept(connection, f"sku-{n}", b"\x00\x00\x00\x00\x01%d" % n) for n in range(50)]
        states = [report(connection, operation, b"state") for operation in operations]
    relay = relays.start()
    relays.empty()
    commands = topics.records(topics.name(TYPE, "commands"))
    assert events_of(commands) == sorted(one.row for one in operations)
    assert events_of(topics.records(topics.name("state"))) == sorted(states)
    by_event = {int(headers_of(record)["cf_event"]): record for record in commands}
    for place, operation in enumerate(operations):
        record = by_event[operation.row]
        assert record.value() == b"\x00\x00\x00\x00\x01%d" % place
        assert headers_of(record)["ce_id"] == str(operation.id).encode()
        assert headers_of(record)["cf_number"] == b"%d" % operation.number
    places = {row["outbox_id"]: (row["partition"], row["record_offset"]) for row in published(ledger)}
    assert len(places) == 100
    for event, record in by_event.items():
        assert places[event] == (record.partition(), record.offset())
    assert relay.terminate() == 0


def test_a_row_that_commits_late_and_holes_of_rolled_back_ids_hold_nothing_up(
    relays: Relays, ledger: Bed, topics: Topics
) -> None:
    """D01, D02: one session keeps its transaction open with the first id, another rolls back, twenty commit: the twenty leave."""
    topics.make()
    relays.start()
    with ledger.engine.connect() as early, ledger.engine.connect() as rolled_back:
        late = put(early, "state", b"same key", b"v1", operation=_operation())
        put(rolled_back, "state", b"same key", b"never", operation=_operation())
        rolled_back.rollback()
        with ledger.engine.begin() as connection:
            others = [put(connection, "state", b"same key", b"v2", operation=_operation()) for _ in range(20)]
        relays.empty()
        assert [row["outbox_id"] for row in published(ledger)] == others
        early.commit()
    relays.empty()
    assert [row["outbox_id"] for row in published(ledger)] == [late, *others]


def test_rows_are_cleaned_by_the_age_of_their_publication_and_never_before_it(ledger: Bed) -> None:
    """D04: of rows published long ago, published now, waiting for long and refused for long, only the first is dropped."""
    with ledger.engine.begin() as connection:
        connection.execute(text("INSERT INTO counterfoil.published VALUES (1, 1, 'state', 0, 0, counterfoil.ledger_time())"))
    ledger.shift(timedelta(days=40))
    with ledger.engine.begin() as connection:
        connection.execute(text("INSERT INTO counterfoil.published VALUES (2, 2, 'state', 0, 1, counterfoil.ledger_time())"))
        old = put(connection, "state", b"k", b"v", operation=_operation())
        connection.execute(text("UPDATE counterfoil.outbox SET created_at = created_at - interval '60 days'"))
        connection.execute(
            text(
                "INSERT INTO counterfoil.refused (outbox_id, kind, type, revision, created_at, reason, at)"
                " VALUES (9, 'state', 't', 1, now() - interval '60 days', 'message_too_large', now() - interval '60 days')"
            )
        )
        dropped = drop_published(connection, timedelta(days=30))
        assert dropped
        assert all(re.fullmatch(r"published_\d{8}", name) for name in dropped)
    assert [row["outbox_id"] for row in published(ledger)] == [2]
    assert waiting(ledger) == [old]
    assert [row["outbox_id"] for row in refused(ledger)] == [9]


def test_time_partitions_are_made_ahead(relays: Relays, ledger: Bed, topics: Topics) -> None:
    """A day without a partition would refuse every note and every event."""
    topics.make()
    with ledger.engine.begin() as connection:
        tables = "SELECT relname FROM pg_class WHERE relname ~ '^(event|published)_[0-9]{8}$'"
        for name in connection.execute(text(tables)).scalars().all():
            connection.execute(text(f"DROP TABLE counterfoil.{name}"))
    relays.start(partitions_ahead="5d")
    with ledger.engine.connect() as connection:
        eventually(lambda: days_ahead(connection, "published") == 5 and days_ahead(connection, "event") == 5)


def test_a_row_that_can_never_fit_is_moved_aside_with_its_operation_and_nothing_waits_for_it(
    relays: Relays, ledger: Bed, topics: Topics
) -> None:
    """D07, L2: quarantined with its size as the reason; the rows of other keys leave, and it is not sent again."""
    topics.create({topics.name("dead-letters"): LETTERS})
    topics.make(TYPE)
    with ledger.engine.begin() as connection:
        large = accept(connection, "large", _noise(1_120_000))
        normal = [accept(connection, f"sku-{n}") for n in range(3)]
    relays.start()
    relays.empty()
    assert [(row["outbox_id"], row["reason"]) for row in refused(ledger)] == [(large.row, "message_too_large")]
    assert state_of(ledger, large.number) == "quarantined"
    assert events_of(topics.records(topics.name(TYPE, "commands"))) == [one.row for one in normal]
    letter = topics.records(topics.name("dead-letters"))
    reasons = [headers_of(record).get("cf_reason") for record in letter]
    assert reasons.count(b"message_too_large") == 1
    assert ledger.one("SELECT count(*) FROM counterfoil.event WHERE kind = 'quarantined'") == 1


def test_a_small_row_that_was_refused_with_a_large_one_of_its_batch_is_retried_alone(
    relays: Relays, ledger: Bed, topics: Topics
) -> None:
    """D08: the topic's limit is smaller than the client's; each row is judged in a batch of its own."""
    topics.make()
    topics.create({topics.name(TYPE, "commands"): {"max.message.bytes": "20000"}}, partitions=1)
    topics.create({topics.name(TYPE, "retry"): {}})
    noise = _noise(30_000)
    with ledger.engine.begin() as connection:
        small = [accept(connection, f"small-{n}", _noise(1_000)) for n in range(10)]
        large = accept(connection, "large", noise)
        small += [accept(connection, f"small-{n}", _noise(1_000)) for n in range(10, 20)]
    relays.start()
    eventually(lambda: len(published(ledger)) >= 20 and state_of(ledger, large.number) == "quarantined", what="all of it")
    assert [row["outbox_id"] for row in refused(ledger)] == [large.row]
    assert Counter(events_of(topics.records(topics.name(TYPE, "commands")))) == Counter(one.row for one in small)


def test_a_missing_topic_delays_its_own_rows_only_and_they_leave_when_it_is_there(
    relays: Relays, ledger: Bed, topics: Topics
) -> None:
    """D13, D67: an alarm names the topic, nothing creates it, and no row is lost or refused."""
    topics.create({topics.name("state"): {"cleanup.policy": "compact"}})
    with ledger.engine.begin() as connection:
        held = accept(connection, "a")
        letter = put(connection, "dead_letter", b"k", b"v", headers='[["cf_reason", "tries_used_up"], ["cf_type", "t"]]')
        unknown = accept(connection, "b", type_name="nobody_has_it")
        good = report(connection, held, b"state")
    relay = relays.start()
    eventually(lambda: waiting(ledger) == sorted([held.row, letter, unknown.row]), what="the good topic's row to leave")
    assert [row["outbox_id"] for row in published(ledger)] == [good]
    for missing in (topics.name(TYPE, "commands"), topics.name("dead-letters"), topics.name("nobody_has_it", "commands")):
        relay.printed(f'"event":"topic_missing","topic":"{missing}"')
    assert topics.existing() == {topics.name("state")}
    topics.create({topics.name("dead-letters"): LETTERS})
    topics.make(TYPE, "nobody_has_it")
    relays.empty()
    assert not refused(ledger)


def test_a_dead_letter_topic_that_would_lose_records_is_an_alarm_and_its_rows_wait(
    relays: Relays, ledger: Bed, topics: Topics
) -> None:
    """D67: kept for a shorter time than the promised review; the cause is in SQL, and the letter waits there."""
    topics.create({topics.name("dead-letters"): {**LETTERS, "retention.ms": "3600000"}})
    topics.make(TYPE)
    with ledger.engine.begin() as connection:
        letter = put(connection, "dead_letter", b"k", b"v", headers='[["cf_reason", "tries_used_up"], ["cf_type", "t"]]')
        state = put(connection, "state", b"k", b"v", operation=_operation())
    relay = relays.start()
    relay.printed(f'"event":"topic_wrong","topic":"{topics.name("dead-letters")}","kind":"retention_short"')
    eventually(lambda: [row["outbox_id"] for row in published(ledger)] == [state])
    assert waiting(ledger) == [letter]
    relays.line.run("topics", "apply")
    relays.empty()
    marked = [record for record in topics.records(topics.name("dead-letters")) if "cf_check" in headers_of(record)]
    assert marked, "the write check"


def test_a_null_value_is_a_tombstone_and_an_empty_one_is_a_value(relays: Relays, ledger: Bed, topics: Topics) -> None:
    """D16: SQL NULL, b'{}' and b''; nowhere the four bytes null."""
    topics.make()
    with ledger.engine.begin() as connection:
        for key, value in ((b"none", None), (b"braces", b"{}"), (b"empty", b"")):
            put(connection, "state", key, value, operation=_operation())
    relays.start()
    relays.empty()
    records = {record.key(): record.value() for record in topics.records(topics.name("state"))}
    assert records == {b"none": None, b"braces": b"{}", b"empty": b""}


@pytest.mark.parametrize("key", [None, b""])
def test_a_state_row_without_a_key_is_refused_before_it_is_sent(
    relays: Relays, ledger: Bed, topics: Topics, key: bytes | None
) -> None:
    """D17: one attempt, which never reaches the producer."""
    topics.make()
    with ledger.engine.begin() as connection:
        bad = put(connection, "state", key, b"v", operation=_operation())
        good = put(connection, "state", b"k", b"v", operation=_operation())
    relay = relays.start()
    relays.empty()
    assert [(row["outbox_id"], row["reason"]) for row in refused(ledger)] == [(bad, "key_missing")]
    assert events_of(topics.records(topics.name("state"))) == [good]
    assert relay.output.count('"row_refused"') == 1


def test_keys_land_where_java_clients_put_them(relays: Relays, ledger: Bed, topics: Topics) -> None:
    """D19: 200 keys on 4 partitions; the relay and a worker written for another client agree on each."""
    topics.make()
    with ledger.engine.begin() as connection:
        for n in range(200):
            put(connection, "state", b"order-%d" % n, b"v", operation=_operation())
    relays.start()
    relays.empty()
    there = {record.key(): record.partition() for record in topics.records(topics.name("state"))}
    assert there == {key: (_murmur2(key) & 0x7FFFFFFF) % 4 for key in (b"order-%d" % n for n in range(200))}


def test_a_changed_partition_count_is_told_until_somebody_accepts_it(relays: Relays, ledger: Bed, topics: Topics) -> None:
    """D20: four partitions are seen, then eight; `topics verify` and the relay say so, `topics apply` accepts it."""
    topics.make(TYPE)
    relays.start().printed('"shards_taken"')
    name = topics.name(TYPE, "commands")
    query = "SELECT value FROM counterfoil.setting WHERE name = :name"
    eventually(lambda: ledger.rows(query, name=f"partitions:{name}") == [{"value": "4"}], what="the count to be written down")
    _grow(topics, name, 8)
    relay = relays.start()
    relay.printed(f'"event":"topic_wrong","topic":"{name}","kind":"partitions_changed"')
    assert ledger.rows(query, name=f"partitions:{name}") == [{"value": "4"}]
    relays.line.run("topics", "apply")
    assert ledger.rows(query, name=f"partitions:{name}") == [{"value": "8"}]


def test_plans_are_made_and_applied_and_then_there_is_nothing_left_to_do(relays: Relays, topics: Topics) -> None:
    """D13: what is missing is listed; only `apply` makes it, with the chosen partition count."""
    line = relays.line.settings
    settings = Settings(
        ledger=line["ledger"],
        operations=MODULE,
        database=line["database"],
        brokers=line["brokers"],
        topic_partitions=3,
    )
    assert {step.act for step in plan(settings, OPERATIONS)} == {"create"}
    assert {flaw.code for flaw in verify(settings, OPERATIONS)} == {"missing"}
    assert not topics.existing()
    apply(settings, OPERATIONS)
    eventually(lambda: len(topics.existing()) == 4)
    assert verify(settings, OPERATIONS) == []
    assert {step.act for step in apply(settings, OPERATIONS)} == {"keep"}
    known = topics.kafka.admin().list_topics(timeout=10).topics
    assert {len(known[name].partitions) for name in topics.existing()} == {3}


TERMS = Terms(timedelta(seconds=10), timedelta(seconds=30))


def test_a_shard_in_any_half_way_state_is_taken_once_nobody_may_still_send_for_it(ledger: Bed) -> None:
    """D14: owner, lease and waiting time null, past or to come, in every combination: each is taken when its time is up."""
    owners = ("NULL", "987654")
    times = {"null": "NULL", "past": "now() - interval '1 hour'", "soon": "now() + interval '20 seconds'"}
    combinations = list(product(owners, times.values(), times.values()))
    with ledger.engine.begin() as connection:
        for shard, (owner, lease, free) in enumerate(combinations):
            values = f"owner = {owner}, lease_until = {lease}, free_from = {free}"
            connection.execute(text(f"UPDATE counterfoil.shard SET {values} WHERE shard = {shard}"))
        session = open_session(connection, "relay", "test", timedelta(minutes=1))
        now = claim_shards(connection, session, 64, TERMS)
    late = {shard for shard, (_, _, free) in enumerate(combinations) if free == times["soon"]}
    assert set(range(64)) - set(now) == late
    ledger.shift(timedelta(seconds=25))
    with ledger.engine.begin() as connection:
        assert set(claim_shards(connection, session, 64, TERMS)) == late


def test_a_note_after_a_takeover_changes_nothing(ledger: Bed) -> None:
    """S5: the epoch of a note is that of the read; a new owner waits one delivery time-out after the old lease."""
    with ledger.engine.begin() as connection:
        row = put(connection, "state", b"k", b"v", operation=_operation())
        old = open_session(connection, "relay", "old", timedelta(seconds=10))
        epochs = claim_shards(connection, old, 64, TERMS)
        shard = read_waiting(connection, Wanted(dict.fromkeys(epochs, 0), 10, 10, 10_000))[0][0]
        new = open_session(connection, "relay", "new", timedelta(hours=1))
        assert claim_shards(connection, new, 64, TERMS) == {}
    ledger.shift(timedelta(seconds=39))
    with ledger.engine.begin() as connection:
        assert claim_shards(connection, new, 64, TERMS) == {}
    ledger.shift(timedelta(seconds=41))
    with ledger.engine.begin() as connection:
        assert claim_shards(connection, new, 64, TERMS) == dict.fromkeys(range(64), 2)
        assert renew_shards(connection, old, TERMS) == {}
        assert note(connection, old, [(shard, row, 1, 0, 7)]) == 0
        assert note(connection, new, [(shard, row, 1, 0, 7)]) == 0
        assert waiting(ledger) == [row]
        assert note(connection, new, [(shard, row, 2, 0, 8)]) == 1
        assert note(connection, new, [(shard, row, 2, 0, 8)]) == 0
    assert [(one["outbox_id"], one["record_offset"]) for one in published(ledger)] == [(row, 8)]


def test_a_read_is_bounded_in_bytes_whatever_the_rows_hold(ledger: Bed) -> None:
    """Memory: 40 rows of 100 KB are read a few at a time, in order, and a row larger than the bound comes alone."""
    with ledger.engine.begin() as connection:
        rows = [put(connection, "state", b"k", _noise(100_000), operation=_operation()) for _ in range(40)]
        found = read_waiting(connection, Wanted(dict.fromkeys(range(64), 0), 100, 100, 250_000))
        assert [row[1] for row in found] == rows[:3]
        assert len(read_waiting(connection, Wanted(dict.fromkeys(range(64), 0), 100, 100, 1))) == 1


def _operation() -> UUID:
    return uuid4()


def _noise(size: int) -> bytes:
    """Bytes that do not compress."""
    noise: bytes = random.Random(size).randbytes(size)
    return noise


def _grow(topics: Topics, name: str, count: int) -> None:
    for done in topics.kafka.admin().create_partitions([NewPartitions(name, count)]).values():
        done.result(15)
    eventually(lambda: len(topics.kafka.admin().list_topics(timeout=10).topics[name].partitions) == count)


def _murmur2(data: bytes) -> int:
    """Kafka's hash of a key, as its Java client has it."""
    length, mixed = len(data), 0x9747B28C ^ len(data)
    for start in range(0, length - length % 4, 4):
        k = int.from_bytes(data[start : start + 4], "little") * 0x5BD1E995 & 0xFFFFFFFF
        k = (k ^ k >> 24) * 0x5BD1E995 & 0xFFFFFFFF
        mixed = (mixed * 0x5BD1E995 & 0xFFFFFFFF) ^ k
    rest = data[length - length % 4 :]
    if rest:
        mixed = (mixed ^ int.from_bytes(rest, "little")) * 0x5BD1E995 & 0xFFFFFFFF
    mixed = (mixed ^ mixed >> 13) * 0x5BD1E995 & 0xFFFFFFFF
    return mixed ^ mixed >> 15
