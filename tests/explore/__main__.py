"""`make explore`: the table of searches, the named cases, the simulator; exit 1 where an invariant falls or a rule is not missed.

`--only WORD` takes the configurations and cases whose name has the word; `--seed N` plays one life of the simulator again.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Callable
from typing import Final

from counterfoil.core.states import State
from counterfoil.core.transitions import TABLE, Actor
from tests.explore import line, ordered_cases, topic
from tests.explore.cases import REAL, Case, single
from tests.explore.configuration import CONFIGURATIONS, Configuration
from tests.explore.search import Found, Search
from tests.explore.simulator import SEEDS, replayed, simulated

#: Fewer distinct states than these are not the search that the design speaks of.
FEWEST_STATES: Final = 100_000


class Run:
    """One run, and whether anything in it was wrong."""

    def __init__(self) -> None:
        self.wrong = 0
        self.states = 0
        self.reached: Counter[State] = Counter()
        self.edges: set[tuple[State, State, Actor]] = set()

    def configuration(self, configuration: Configuration) -> None:
        """One line of the table; a violation with the shortest way to it."""
        began = time.process_time()
        found = Search(configuration, REAL).run()
        self.states += found.states
        self.reached += found.reached
        self.edges |= found.edges
        took = time.process_time() - began
        verdict = str(found.violation.invariant) if found.violation else "holds"
        print(f"{configuration.name:<52}{found.states:>10,}{found.steps:>12,}{took:>8.1f}  {verdict}", flush=True)
        self._told(found)

    def case(self, case: Case) -> None:
        """One named trace: impossible with its rule, found without."""
        kept = Search(case.configuration, REAL).run()
        lost = Search(case.bent or case.configuration, case.without, case.wanted).run()
        self.named(case.name, case.rule, kept, lost)

    def named(self, name: str, rule: str, kept: Found, lost: Found) -> None:
        """Its line, and what was found without the rule."""
        with_it = f"impossible in {kept.states:,} states" if kept.violation is None else f"{kept.violation.invariant} FELL"
        missed = lost.violation is None
        without = "NOT NOTICED" if lost.violation is None else f"{lost.violation.invariant} falls in {len(lost.trace)} steps"
        print(f"guard {name:<4} {rule}: removed: {'not ' if missed else ''}caught ({without}); with it: {with_it}", flush=True)
        if lost.trace:
            print("          " + " · ".join(lost.trace))
        self.wrong += missed
        self._told(kept)

    def ordered(self, configuration: ordered_cases.Ordered) -> None:
        """The same for several operations of one entity."""
        began = time.process_time()
        found = configuration.search().run()
        self.states += found.states
        self.reached += found.reached
        took = time.process_time() - began
        verdict = str(found.violation.invariant) if found.violation else "holds"
        print(f"{configuration.name:<52}{found.states:>10,}{found.steps:>12,}{took:>8.1f}  {verdict}", flush=True)
        self._told(found)

    def covered(self) -> None:
        """What was met, so that no search passes by meeting nothing."""
        print(f"\n{self.states:,} distinct states; " + ", ".join(f"{state} {self.reached[state]:,}" for state in State))
        rows = {(source, target, who) for row in TABLE for source in row.sources for target in row.targets for who in row.who}
        ours = {row for row in rows if row[0] is not None and row[2] is not Actor.RECOVER}
        print(f"{len(self.edges & ours)} of the table's {len(ours)} transitions were taken; not searched:")
        for source, target, who in sorted(ours - self.edges, key=str):
            print(f"    {source} to {target}, {who}")
        if self.states < FEWEST_STATES or any(not self.reached[state] for state in State):
            print("too little was searched")
            self.wrong += 1

    def _told(self, found: Found) -> None:
        if found.violation is not None:
            self.wrong += 1
            print(f"    {found.violation.invariant}: {found.violation.words}, after: " + " · ".join(found.trace))


def cases(run: Run, chosen: Callable[[str], bool]) -> None:
    """Every named trace."""
    for case in single():
        if chosen(case.name) or chosen(case.rule):
            run.case(case)
    for several in ordered_cases.ordered_cases():
        if chosen(several.name) or chosen(several.rule):
            run.named(several.name, several.rule, several.searched.search().run(), several.without().run())
    rule = "the entity's row is locked from the look to the commit"
    if chosen("H1") or chosen(rule):
        run.named("H1", rule, line.search(), line.search(locked=False))
    rule = "an acknowledgement counts once no earlier row of its key is unknown"
    if chosen("H2") or chosen(rule):
        run.named("H2", rule, topic.search(), topic.search(careless=True))


def main(arguments: list[str]) -> int:
    """Everything; 1 where anything is wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.explore", description="Exhaustive search of the real core.")
    parser.add_argument("--only", metavar="WORD", default="", help="configurations and cases whose name has the word")
    parser.add_argument("--seed", type=int, metavar="N", help="play one life of the simulator again, event by event")
    parser.add_argument("--seeds", type=int, metavar="N", default=SEEDS, help="lives of the simulator (default: %(default)s)")
    asked = parser.parse_args(arguments)
    if asked.seed is not None:
        return replayed(asked.seed)
    run, began = Run(), time.process_time()

    def chosen(name: str) -> bool:
        return asked.only.lower() in name.lower()

    print(f"{'configuration':<52}{'states':>10}{'steps':>12}{'cpu s':>8}")
    for configuration in CONFIGURATIONS:
        if chosen(configuration.name):
            run.configuration(configuration)
    for several in ordered_cases.CONFIGURATIONS:
        if chosen(several.name):
            run.ordered(several)
    if not asked.only:
        run.covered()
    print()
    cases(run, chosen)
    print()
    if not asked.only:
        run.wrong += simulated(asked.seeds)
    print(f"{time.process_time() - began:.0f} s of one core; {run.wrong} wrong")
    return 1 if run.wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
