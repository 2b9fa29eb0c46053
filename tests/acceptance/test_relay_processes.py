"""`counterfoil relay` as processes: killed, stopped, doubled, and cut off from the broker and the database."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import text

from counterfoil.parts import fault_proxy
from tests.support.ledgers import Bed
from tests.support.processes import CommandLine
from tests.support.relayed import MODULE, Relays, accept, events_of, headers_of, published, put, refused, variables, waiting
from tests.support.topics import Topics
from tests.support.waiting import eventually

TYPE = "upsert_projection"
SOON = {"stop_after": "4s", "relay_delivery_timeout": "2s"}


@pytest.fixture
def relays(command_line: CommandLine, ledger: Bed, topics: Topics) -> Relays:
    command_line.settings["operations"] = MODULE
    return Relays(command_line, ledger, topics)


def fill(ledger: Bed, count: int, *, keys: int = 64) -> list[int]:
    """So many state rows on so many keys, in one transaction."""
    with ledger.engine.begin() as connection:
        return [put(connection, "state", b"key-%d" % (n % keys), b"%d" % n, operation=uuid4()) for n in range(count)]


def last_of_each_key(records: Sequence[Any]) -> dict[bytes, bytes]:
    return {record.key(): record.value() for record in records}


def test_killed_after_the_acknowledgement_and_before_the_note_it_sends_again_with_the_same_ids(
    relays: Relays, ledger: Bed, topics: Topics
) -> None:
    """D05, S5: the copy has the same event id and idempotency key, and each row is noted once."""
    topics.make(TYPE)
    with ledger.engine.begin() as connection:
        operations = [accept(connection, f"sku-{n}") for n in range(20)]
    killed = relays.start(failpoints="relay.after_ack=kill")
    killed.reached("relay.after_ack")
    assert killed.wait() == -9
    assert published(ledger) == []
    relays.start()
    relays.empty()
    records = topics.records(topics.name(TYPE, "commands"))
    sent = Counter(events_of(records))
    assert set(sent) == {one.row for one in operations}
    assert max(sent.values()) == 2
    keys = Counter(headers_of(record)["cf_key"] for record in records)
    assert len(keys) == len(operations)
    assert sorted(row["outbox_id"] for row in published(ledger)) == sorted(one.row for one in operations)


@pytest.mark.parametrize("place", ["relay.before_produce", "relay.after_note"])
def test_killed_anywhere_else_nothing_is_lost_and_nothing_noted_twice(
    relays: Relays, ledger: Bed, topics: Topics, place: str
) -> None:
    """S5, L2: killed at the second pass of the place, with rows on both sides of it."""
    topics.make()
    rows = fill(ledger, 300)
    killed = relays.start(failpoints=f"{place}=kill@2", relay_batch="200")
    eventually(lambda: published(ledger) or not killed.running(), what="the first pass")
    rows += fill(ledger, 300)
    killed.reached(place)
    killed.wait()
    relays.start()
    relays.empty()
    assert [row["outbox_id"] for row in published(ledger)] == rows
    assert last_of_each_key(topics.records(topics.name("state"))) == {b"key-%d" % (n % 64): b"%d" % n for n in range(236, 300)}


def test_two_relays_share_the_shards_and_one_takes_over_from_a_killed_one(relays: Relays, ledger: Bed, topics: Topics) -> None:
    """S5, S16, L2: each owns half; what the dead one had in hand leaves one delivery time-out after its lease."""
    topics.make()
    first, second = relays.start(), relays.start()
    owned = "SELECT count(*) AS n FROM counterfoil.shard WHERE owner IS NOT NULL GROUP BY owner ORDER BY n"
    eventually(lambda: ledger.rows(owned) == [{"n": 32}, {"n": 32}], within=30, what="half of the shards each")
    rows = fill(ledger, 2_000)
    first.kill()
    rows += fill(ledger, 2_000)
    relays.empty(within=40)
    assert sorted(row["outbox_id"] for row in published(ledger)) == rows
    assert last_of_each_key(topics.records(topics.name("state"))) == {b"key-%d" % (n % 64): b"%d" % n for n in range(1936, 2000)}
    eventually(lambda: ledger.rows(owned) == [{"n": 64}], within=30, what="all shards with the one that lives")
    assert second.terminate() == 0


def test_at_sigterm_it_notes_what_was_acknowledged_gives_its_shards_back_and_the_next_begins_at_once(
    relays: Relays, ledger: Bed, topics: Topics
) -> None:
    """D10: exit 0 in the middle of a backlog; every row is either noted and in the topic, or still waits."""
    topics.make()
    rows = fill(ledger, 3_000)
    relay = relays.start(relay_batch="100")
    eventually(lambda: len(published(ledger)) > 0, what="the first note")
    assert relay.terminate() == 0
    noted = {row["outbox_id"] for row in published(ledger)}
    assert noted | set(waiting(ledger)) == set(rows)
    assert not noted & set(waiting(ledger))
    assert noted == set(events_of(topics.records(topics.name("state"))))
    assert ledger.one("SELECT count(*) FROM counterfoil.shard WHERE owner IS NOT NULL OR free_from > now()") == 0
    assert ledger.one("SELECT count(*) FROM counterfoil.worker WHERE stopped_at IS NULL") == 0
    relays.start()
    relays.empty()
    assert events_of(topics.records(topics.name("state"))) == rows


def test_stopped_past_its_lease_it_sends_nothing_more_for_what_another_has_taken(
    relays: Relays, ledger: Bed, topics: Topics
) -> None:
    """S16: stopped between reading and sending, continued after a takeover: the topic does not end on an old state."""
    topics.make()
    with ledger.engine.begin() as connection:
        put(connection, "state", b"k", b"old", operation=uuid4())
    stopped = relays.start(failpoints="relay.before_produce=stop")
    stopped.reached("relay.before_produce")
    relays.start()
    relays.empty(within=30)
    with ledger.engine.begin() as connection:
        put(connection, "state", b"k", b"new", operation=uuid4())
    relays.empty()
    stopped.resume()
    stopped.printed('"event":"lease_lost"')
    assert last_of_each_key(topics.records(topics.name("state"))) == {b"k": b"new"}
    assert len(published(ledger)) == 2
    assert stopped.terminate() == 0


@pytest.mark.parametrize("fault", ["refuse", "stall"])
def test_a_broker_that_is_away_for_a_while_loses_nothing_and_doubles_no_note(
    relays: Relays, ledger: Bed, topics: Topics, fault: str
) -> None:
    """D10, D11, S16: refused connections or silence, longer than a delivery time-out, in the middle of a stream."""
    topics.make()
    with topics.kafka.proxy() as proxy:
        relay = relays.start(brokers=proxy.address, relay_delivery_timeout="2s")
        rows = fill(ledger, 300)
        relays.empty()
        getattr(proxy, fault)()
        rows += fill(ledger, 300)
        relay.printed('"event":"broker_lost"', within=40)
        rows += fill(ledger, 300)
        assert len(waiting(ledger)) == 600
        proxy.resume()
        relays.empty(within=60)
        assert relay.terminate() == 0
    assert [row["outbox_id"] for row in published(ledger)] == rows
    assert not refused(ledger)
    assert last_of_each_key(topics.records(topics.name("state"))) == {b"key-%d" % (n % 64): b"%d" % n for n in range(236, 300)}
    assert set(events_of(topics.records(topics.name("state")))) == set(rows)


@pytest.mark.parametrize("fault", ["refuse", "stall"])
def test_a_broker_that_is_lost_for_good_ends_it_with_a_code_and_the_rows_wait(
    relays: Relays, ledger: Bed, topics: Topics, fault: str
) -> None:
    """D10, D34."""
    topics.make()
    with topics.kafka.proxy() as proxy:
        relay = relays.start(brokers=proxy.address, **SOON)
        fill(ledger, 10)
        relays.empty()
        getattr(proxy, fault)()
        rows = fill(ledger, 10)
        assert relay.wait(within=40) == 3
    assert waiting(ledger) == rows


@pytest.mark.parametrize("fault", ["refuse", "stall"])
def test_a_database_that_is_lost_for_good_ends_it_with_a_code(relays: Relays, ledger: Bed, topics: Topics, fault: str) -> None:
    """D34: also when a statement never returns."""
    topics.make()
    with fault_proxy(ledger.server.port) as proxy:
        relay = relays.start(database=through(ledger, proxy.port), **SOON)
        fill(ledger, 10)
        relays.empty()
        getattr(proxy, fault)()
        assert relay.wait(within=40) == 3


def test_a_database_that_is_away_for_longer_than_a_lease_is_waited_for(relays: Relays, ledger: Bed, topics: Topics) -> None:
    """S5: the same process goes on, under a new session, with the shards that nobody has taken."""
    topics.make()
    with fault_proxy(ledger.server.port) as proxy:
        relay = relays.start(database=through(ledger, proxy.port), relay_lease="1s")
        rows = fill(ledger, 100)
        relays.empty()
        proxy.refuse()
        relay.printed('"event":"database_lost"')
        over = "SELECT bool_and(lease_until < now()) FROM counterfoil.worker"
        eventually(lambda: ledger.one(over), what="the end of its lease")
        rows += fill(ledger, 100)
        proxy.resume()
        relays.empty()
        relay.printed('"event":"database_back"')
        assert relay.terminate() == 0
    assert [row["outbox_id"] for row in published(ledger)] == rows


def test_without_a_database_or_a_broker_at_the_start_it_waits_and_then_leaves_with_a_code(
    relays: Relays, ledger: Bed, topics: Topics
) -> None:
    """D34."""
    with fault_proxy(ledger.server.port) as proxy:
        proxy.refuse()
        no_database = relays.line.start("relay", "--json", database=through(ledger, proxy.port), environment=variables(SOON))
        no_broker = relays.line.start("relay", "--json", brokers="127.0.0.1:9", environment=variables(SOON))
        assert no_database.wait(within=40) == 3
        assert no_broker.wait(within=40) == 3
    assert ledger.one("SELECT count(*) FROM counterfoil.shard WHERE owner IS NOT NULL AND lease_until > now()") == 0


def test_a_transaction_that_stays_open_does_not_stop_the_stream(relays: Relays, ledger: Bed, topics: Topics) -> None:
    """D02: an old snapshot pins every deleted row; the rows that come after it leave all the same."""
    topics.make()
    relays.start()
    with ledger.engine.connect() as old:
        old.execute(text("SELECT pg_current_xact_id(), count(*) FROM counterfoil.outbox"))
        for _ in range(5):
            fill(ledger, 200)
            relays.empty()
    assert len(published(ledger)) == 1_000


def through(ledger: Bed, port: int) -> str:
    """The ledger's address through another port."""
    return ledger.url.replace(f":{ledger.server.port}/", f":{port}/")
