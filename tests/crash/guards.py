"""The guards whose removal the checker must see, each with what is put in its place, and faults that no signal can make.

A checker that finds nothing wrong in code with a guard taken out would find nothing anywhere.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any


def _no_fence() -> None:
    from counterfoil.ledger import settlement
    from counterfoil.streams.worker import in_ledger, settling

    before = settlement.save

    def save(connection: Any, writer: Any, rules: Any, locked: Any, results: Sequence[Any]) -> Any:
        forced = {
            one.number: replace(locked.standings[one.number], attempt=one.answered.attempt)
            for one in results
            if one.number in locked.standings
        }
        return before(connection, writer, rules, locked._replace(standings={**locked.standings, **forced}), results)

    for module in (settlement, in_ledger, settling):
        setattr(module, "save", save)  # noqa: B010 - mypy knows these names as functions
    setattr(in_ledger, "holds", lambda *_: True)  # noqa: B010


def _call_before_the_commit() -> None:
    from counterfoil.ledger.admission import admit
    from counterfoil.streams.clock import boottime
    from counterfoil.streams.worker import admitting

    def ask(self: Any, first: Mapping[int, Any], decoded: Any) -> Any:
        desk = self._desk
        before, session = boottime(), desk.lease.session
        connection = desk.calls.engine.connect()
        transaction = connection.begin()
        desk.decoding.finish(connection, decoded)
        admission = admit(connection, desk.writer, session, self._type.rules, [one.candidate for one in first.values()], {})

        def end() -> None:
            transaction.commit()
            connection.close()

        threading.Timer(1.0, end).start()
        return admission, dict.fromkeys(admission.admitted, (before, session))

    setattr(admitting.Admitting, "_ask", ask)  # noqa: B010


def _no_prefix() -> None:
    from counterfoil.streams.worker.prefix import Passed, Prefix

    def finish(self: Prefix, finished: Iterable[Passed]) -> None:
        for one in finished:
            self._passed.append(one)
            self.position = max(self.position or 0, one.offset + 1)

    setattr(Prefix, "finish", finish)  # noqa: B010


def _no_revision_match() -> None:
    from sqlalchemy import text

    from counterfoil.core.order import Ordering
    from counterfoil.ledger import admission
    from counterfoil.ledger.arrays import column
    from counterfoil.ledger.statements.admitting import ADMIT, CANDIDATE

    match, statement = "AND f.asked_revision = f.revision AND f.same", ADMIT[Ordering.UNORDERED]
    assert match in statement.text
    columns = [column(name, element) for name, element in CANDIDATE.items()]
    without = text(statement.text.replace(match, "")).bindparams(*columns)
    setattr(admission, "ADMIT", {**ADMIT, Ordering.UNORDERED: without})  # noqa: B010


def _no_entity_lock() -> None:
    from sqlalchemy import text

    from counterfoil.ledger import ordering
    from counterfoil.ledger.arrays import column

    rows = """SELECT 1 FROM unnest(:l_number) AS a(number), LATERAL (
        SELECT 1 FROM counterfoil.state WHERE number = a.number FOR NO KEY UPDATE
    ) s"""
    setattr(ordering, "HOLD", text(rows).bindparams(column("l_number", "int8")))  # noqa: B010
    setattr(ordering, "LOCK_LINES", text("SELECT :w_entity").bindparams(column("w_entity", "uuid")))  # noqa: B010


def _no_acknowledgement_rule() -> None:
    from counterfoil.streams.relay.key_order import KeyOrder

    def nothing(self: Any, row: Any, *, alone: bool = False) -> list[Any]:
        return []

    for name in ("sent", "refused", "failed"):
        setattr(KeyOrder, name, nothing)
    for name in ("may_send", "first"):
        setattr(KeyOrder, name, lambda *_: True)
    setattr(KeyOrder, "acknowledged", lambda self, row: [row])  # noqa: B010


_OUT: Mapping[str, Callable[[], None]] = {
    "fence": _no_fence,
    "admitted-before-call": _call_before_the_commit,
    "prefix-commit": _no_prefix,
    "revision-match": _no_revision_match,
    "entity-lock": _no_entity_lock,
    "state-acknowledgement": _no_acknowledgement_rule,
}


def take_out(name: str) -> None:
    """Replace the guard in this process."""
    _OUT[name]()


def lose(name: str) -> None:
    """Report the first state record of each key as timed out, although the broker has it: nobody can know better."""
    assert name == "first-state-report"
    from confluent_kafka import KafkaError

    from counterfoil.streams.relay.publisher import Publisher

    before, lost = Publisher.reports, set()

    def reports(self: Any) -> Any:
        told = []
        for row, error, partition, offset in before(self):
            if row.lane.keyed and row.key not in lost:
                lost.add(row.key)
                error = KafkaError(KafkaError._MSG_TIMED_OUT)
            told.append((row, error, partition, offset))
        return told

    setattr(Publisher, "reports", reports)  # noqa: B010
