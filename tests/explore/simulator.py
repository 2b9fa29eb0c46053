"""Many lives, each under its seed, on all cores; the seed of a life that broke an invariant is printed and plays it again."""

from __future__ import annotations

import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from os import cpu_count
from typing import Final, NamedTuple

from tests.explore.deciding import Core
from tests.explore.life import Life
from tests.explore.row import Broken

SEEDS: Final = 10_000
_CHUNK: Final = 250
_JOBS: Final = 2  #: the bar is two cores'


class Lives(NamedTuple):
    """What came of a range of seeds."""

    ends: Counter[str]
    broken: tuple[int, str, str] | None  #: seed, invariant, words


def live(first: int, count: int, core: Core | None = None) -> Lives:
    """Plays `count` lives from seed `first` on, up to the first that breaks an invariant."""
    ends: Counter[str] = Counter()
    for seed in range(first, first + count):
        try:
            ends[Life(seed, core or Core()).run().value] += 1
        except Broken as broken:
            return Lives(ends, (seed, broken.invariant, broken.words))
    return Lives(ends, None)


def replayed(seed: int) -> int:
    """One life, told event by event; 1 where it breaks an invariant."""
    life = Life(seed, Core())
    try:
        end = life.run()
    except Broken as broken:
        print("\n".join(broken.log))
        print(f"seed {seed}: {broken.invariant}: {broken.words}")
        return 1
    print("\n".join([f"{life.kind}, {life.rules.max_tries} tries", *life.log]))
    print(f"seed {seed}: {end}")
    return 0


def simulated(seeds: int = SEEDS) -> int:
    """All lives, on two cores; the number of broken ones that were found."""
    began = time.monotonic()
    ends: Counter[str] = Counter()
    wrong = 0
    with ProcessPoolExecutor(min(_JOBS, cpu_count() or 1), mp_context=get_context("spawn")) as pool:
        chunks = [pool.submit(live, first, min(_CHUNK, seeds - first)) for first in range(0, seeds, _CHUNK)]
        for chunk in chunks:
            lives = chunk.result()
            ends += lives.ends
            if lives.broken is not None:
                seed, invariant, words = lives.broken
                print(f"seed {seed}: {invariant}: {words}; play it again with make explore ARGS='--seed {seed}'")
                wrong += 1
    told = ", ".join(f"{state} {count:,}" for state, count in sorted(ends.items()))
    print(f"simulator: {seeds:,} seeds in {time.monotonic() - began:.0f} s; ends: {told}; {wrong} broken")
    return wrong
