"""Holds the witnesses of one cell against each other: the callers, the sinks' journals, the topics, the offsets, the ledger."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from traceback import extract_tb

import orjson

from counterfoil.sinks.journal import Entry, doubled
from counterfoil.streams.worker.consumer import group_of
from tests.crash.bed import Bed
from tests.crash.callers import Wanted
from tests.crash.declared import CODES, OPERATIONS, stock
from tests.crash.declared import ordered as in_line
from tests.support import invariants, invariants_of_attempts

OUTSIDE = ("keyed", "once", "ordered")
MOST_ATTEMPTS = 40


@dataclass
class Verdict:
    """What the witnesses say of one cell."""

    violations: list[str] = field(default_factory=list)
    lost: int = 0  #: accepted operations that are not there, or are done without their effect
    doubled: int = 0  #: effects beyond one an operation
    states: Counter[str] = field(default_factory=Counter)
    events: Counter[str] = field(default_factory=Counter)


def judge(bed: Bed, wanted: Wanted) -> Verdict:
    """Call it when everything has come to rest and no process runs any more."""
    engine, topics, found = bed.engine, bed.topics, Verdict()
    entries = entries_of(bed, wanted)
    roads = {f"{each.name}:{road}": topics.name(each.name, road) for each in OPERATIONS.types for road in ("commands", "retry")}
    records = topics.records(*roads.values())
    state_records, letters = topics.records(topics.name("state")), topics.records(topics.name("dead-letters"))
    places = {"state": topics.name("state")}
    for each in OPERATIONS.types:
        places |= {f"command:{each.name}": roads[f"{each.name}:commands"], f"retry:{each.name}": roads[f"{each.name}:retry"]}
    committed = {(topic, n): at for topic in roads.values() for n, at in topics.committed(group_of(bed.name), topic).items()}
    effects = Counter(entry.subject for entry in entries if entry.changed_content)
    ordered = {str(one) for one, name in wanted.types.items() if name == in_line.name}
    outside = [one for one in wanted.ok if wanted.types[one] in OUTSIDE]
    notes = [*records, *state_records, *letters]
    checks: Sequence[Callable[[], None]] = (
        lambda: invariants.accepted_is_what_the_callers_know(engine, wanted.ok, wanted.unknown, wanted.failed),
        lambda: invariants.effects_are_single(engine, effects, outside),
        lambda: invariants_of_attempts.effects_are_what_was_asked(engine, entries, wanted.fields),
        lambda: invariants_of_attempts.versions_never_go_down([each for each in entries if each.operation in ordered]),
        lambda: invariants_of_attempts.rows_beside_the_ledger_are_single(engine, stock.name),
        lambda: invariants.chains_verify(engine),
        lambda: invariants_of_attempts.transitions_are_of_the_table(engine),
        lambda: invariants_of_attempts.attempts_follow_each_other(engine, MOST_ATTEMPTS),
        lambda: invariants_of_attempts.requests_were_admitted(engine, entries),
        lambda: invariants_of_attempts.what_was_told_was_saved(engine, lines_of(bed)),
        lambda: invariants.published_is_in_the_topics(engine, notes, {**places, "dead_letter": topics.name("dead-letters")}),
        lambda: invariants.below_the_committed_offset_all_is_known(engine, records, committed),
        lambda: invariants.the_state_topic_ends_with_the_ledger(engine, state_records),
        lambda: invariants_of_attempts.every_cause_has_its_letter(engine, letters, CODES),
        lambda: invariants.nothing_is_forgotten(engine),
        lambda: invariants.nothing_still_moves(engine),
    )
    for check in checks:
        try:
            check()
        except Exception as error:  # noqa: BLE001 - whatever a check meets, it is a violation of this cell
            where = extract_tb(error.__traceback__)[-1]
            found.violations.append(f"{where.name}: {str(error)[:400] or where.line}")
    _count(bed, wanted, entries, found)
    return found


def entries_of(bed: Bed, wanted: Wanted) -> list[Entry]:
    """The requests of this cell's operations, at both sinks."""
    mine = {str(each) for each in wanted.types}
    return [entry for sink in (bed.servers.keyed, bed.servers.plain) for entry in sink.entries() if entry.operation in mine]


def lines_of(bed: Bed) -> list[dict[str, object]]:
    """What the cell's processes have logged."""
    return [
        orjson.loads(line)
        for started in bed.line.started
        for line in started.output.splitlines()
        if line.startswith('{"') and line.endswith("}")
    ]


def _count(bed: Bed, wanted: Wanted, entries: Sequence[Entry], found: Verdict) -> None:
    now = invariants.states(bed.engine)
    found.states = Counter(now.values())
    effects = {entry.operation for entry in entries if entry.changed_content}
    outside = {one for one in wanted.ok if wanted.types[one] in OUTSIDE}
    found.lost = sum(
        one not in now or (one in outside and now[one] in invariants.DONE and str(one) not in effects) for one in wanted.ok
    )
    rows = "SELECT coalesce(sum(n - 1), 0) FROM (SELECT count(*) AS n FROM stock_log GROUP BY operation) AS each"
    found.doubled = doubled(entries) + int(bed.one(rows))
    with bed.engine.connect() as connection:
        for row in connection.exec_driver_sql("SELECT kind, reason FROM counterfoil.event"):
            found.events[row.kind] += 1
            found.events[f"reason {row.reason}"] += 1
