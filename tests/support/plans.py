"""What PostgreSQL really does for our statements: each is explained, with its own parameters, before it runs.

`EXPLAIN ANALYZE` runs the statement in a savepoint that is rolled back: rows are counted, not guessed, and no clock decides.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Engine, event

#: Tables that grow with the ledger; `event_…` and `published_…` are partitions.
GROWING = re.compile(r"(operation|payload|state|outbox|event|published|raw_record|acknowledged|entity)(_.*)?")
_OURS = ("SAVEPOINT", "RELEASE", "ROLLBACK", "SHOW")


@dataclass
class Plan:
    """One statement as it was executed."""

    statement: str
    root: dict[str, Any]

    def nodes(self) -> Iterator[dict[str, Any]]:
        """Every node, the root first."""
        waiting = [self.root]
        while waiting:
            node = waiting.pop()
            yield node
            waiting.extend(node.get("Plans", ()))

    def scanned(self) -> set[str]:
        """The growing tables that it reads from end to end, empty ones (partitions of days to come) apart."""
        scans = [node for node in self.nodes() if node["Node Type"] == "Seq Scan" and _handled(node)]
        return {name for name in (node["Relation Name"] for node in scans) if GROWING.fullmatch(name)}

    def rows(self) -> float:
        """The rows that its busiest node handled, those that it threw away included."""
        return max(map(_handled, self.nodes()))

    def indexes(self) -> set[str]:
        """The indexes that it uses."""
        return {node["Index Name"] for node in self.nodes() if "Index Name" in node}


def _handled(node: dict[str, Any]) -> float:
    removed = sum(count for name, count in node.items() if name.startswith("Rows Removed"))
    return float(node.get("Actual Loops", 0) * (node.get("Actual Rows", 0) + removed))


@dataclass
class Plans:
    """The plans of all statements that an engine runs while it is watched."""

    found: list[Plan] = field(default_factory=list)

    def of(self, words: str) -> list[Plan]:
        """The plans of the statements that contain these words."""
        return [plan for plan in self.found if words in plan.statement]


@contextmanager
def explained(engine: Engine) -> Iterator[Plans]:
    """Explains every statement of the engine inside the block."""
    plans = Plans()

    def explain(_connection: Any, cursor: Any, statement: str, parameters: Any, _context: Any, many: bool) -> None:
        if many or statement.lstrip().startswith(_OURS):
            return
        with cursor.connection.cursor() as beside:
            beside.execute("SAVEPOINT explained")
            beside.execute(f"EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) {statement}", parameters)
            (answer,) = beside.fetchone()
            beside.execute("ROLLBACK TO SAVEPOINT explained")
        tree = json.loads(answer) if isinstance(answer, str) else answer
        plans.found.append(Plan(statement, tree[0]["Plan"]))

    event.listen(engine, "before_cursor_execute", explain)
    try:
        yield plans
    finally:
        event.remove(engine, "before_cursor_execute", explain)
