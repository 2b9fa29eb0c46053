"""`python -m counterfoil.demo.ready [--database URL] [--brokers HOST:PORT] [--json]`: exit 1 unless every check holds."""

import argparse
import sys
from collections.abc import Iterator
from typing import Any, NamedTuple

import orjson

from counterfoil.demo.processes import Died
from counterfoil.demo.ready.checks import Check, invalid_payload, killed_before_the_commit, temporary_errors
from counterfoil.demo.ready.declared import BUSY, INVALID, MARKER, MAX_TRIES, SAVED
from counterfoil.demo.ready.road import FAILURES, KILL_AT, Overdue, Road, road
from counterfoil.parts import PartFailed, PartMissing


class Told(NamedTuple):
    """One of the three operations, with what was checked of it."""

    title: str
    operation_id: str
    checks: list[Check]


def walk(parts: Road) -> Iterator[Told]:
    """Send the three on their ways, one after the other."""
    parts.start("relay")
    first = parts.start("worker", f"{KILL_AT}=kill")
    one = parts.enqueue(SAVED)
    parts.until((parts.folder / KILL_AT).exists, "the kill before the commit")
    first.kill()  # it has ended by itself: this takes note of it
    parts.start("worker")
    parts.comes_to_rest(one)
    parts.until(parts.all_passed, "the commit of the redelivered record")
    shown = parts.shown(one, lambda seen: _has(seen, "ack_sent"))
    checks = list(killed_before_the_commit(shown, parts.journal(one)))
    yield Told("1  a result, SIGKILL before the commit, the record again", str(one), checks)

    two = parts.enqueue(BUSY)
    parts.comes_to_rest(two)
    shown = parts.shown(two, lambda seen: _has(seen, "ack_sent"))
    yield Told(
        "2  temporary errors, then success", str(two), list(temporary_errors(shown, parts.journal(two), FAILURES, MAX_TRIES))
    )

    three = parts.enqueue(INVALID)
    parts.comes_to_rest(three)
    marker = parts.enqueue(MARKER)
    parts.comes_to_rest(marker)
    parts.until(parts.all_passed, "the commit of the marker")
    shown = parts.shown(three, lambda seen: _has(seen, "ack_sent") and not seen["unpublished"])
    checks = list(invalid_payload(shown, parts.journal(three), parts.on_topics(three, marker)))
    yield Told("3  a payload that the sink refuses for good", str(three), checks)


def _has(shown: dict[str, Any], event: str) -> bool:
    return any(line["event"] == event for line in shown["log"])


def main() -> int:
    """Run it and say what holds."""
    parser = argparse.ArgumentParser(prog="python -m counterfoil.demo.ready", description=__doc__)
    parser.add_argument("--database", help="URL of a real PostgreSQL; default: one from the wheel")
    parser.add_argument("--brokers", help="real brokers; default: an Apache Kafka of its own")
    parser.add_argument("--json", action="store_true", help="one JSON object")
    chosen = parser.parse_args()
    told: list[Told] = []
    try:
        with road(chosen.database, chosen.brokers) as parts:
            for one in walk(parts):
                told.append(one)
                if not chosen.json:
                    _say(one)
    except (Died, Overdue, PartFailed, PartMissing) as trouble:
        sys.stderr.write(f"ready: {trouble}\n")
        return 1
    failed = sum(not check.holds for one in told for check in one.checks)
    total = sum(len(one.checks) for one in told)
    if chosen.json:
        sys.stdout.write(orjson.dumps({"checks": total, "failed": failed, "operations": _as_data(told)}).decode() + "\n")
    else:
        sys.stdout.write(f"ready: {total} checks, {failed} failed\n")
    return 1 if failed else 0


def _say(one: Told) -> None:
    sys.stdout.write(f"{one.title}  ({one.operation_id})\n")
    sys.stdout.writelines(f"   {'ok' if check.holds else 'NO'}  {check.sentence}\n" for check in one.checks)
    sys.stdout.flush()


def _as_data(told: list[Told]) -> list[dict[str, Any]]:
    return [
        {"title": one.title, "operation_id": one.operation_id, "checks": [each._asdict() for each in one.checks]} for one in told
    ]


if __name__ == "__main__":
    sys.exit(main())
