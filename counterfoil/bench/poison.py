"""`counterfoil bench poison`: the worst time and the worst memory of decoding over values that are made to hurt.

Time is the processor's, of this thread, and the best of several: it says what the decoder does, not what else the machine does.
Memory is the highest that Python held beyond what was there before.
"""

import gc
import time
import tracemalloc
from contextlib import suppress
from typing import Any

from counterfoil.bench.gates import Bar, Gauged
from counterfoil.bench.nasty import Nasty, corpus
from counterfoil.core.errors import Undecodable

MOST_MS = 50.0
MOST_MIB = 64.0
TIMES = 5


def gauge() -> Gauged:
    """Decode every value of the corpus; each must be refused, or be what it says."""
    found = [measured(nasty) for nasty in corpus()]
    slowest, largest = max(found, key=lambda one: one["ms"]), max(found, key=lambda one: one["mib"])
    wrong = [one["value"] for one in found if not one["as_expected"]]
    return Gauged(
        (
            Bar("worst time", slowest["ms"], MOST_MS, "ms", at_least=False),
            Bar("worst memory", largest["mib"], MOST_MIB, "MiB", at_least=False),
            Bar("values read or refused against expectation", len(wrong), 0, "values", at_least=False),
        ),
        {"slowest": slowest["value"], "largest": largest["value"], "wrong": wrong, "values": found},
    )


def measured(nasty: Nasty) -> dict[str, Any]:
    """One value: milliseconds, MiB, and what became of it."""
    refused = None
    try:
        nasty.contract.decode(nasty.value)
    except Undecodable as error:
        refused = error.reason.value
    return {
        "value": nasty.name,
        "bytes": len(nasty.value),
        "refused": refused,
        "as_expected": nasty.fits == (refused is None),
        "ms": round(min(_seconds(nasty) for _ in range(TIMES)) * 1000, 2),
        "mib": round(_peak(nasty) / 2**20, 2),
    }


def _seconds(nasty: Nasty) -> float:
    gc.collect()
    began = time.thread_time()
    with suppress(Undecodable):
        nasty.contract.decode(nasty.value)
    return time.thread_time() - began


def _peak(nasty: Nasty) -> int:
    tracemalloc.start()
    try:
        with suppress(Undecodable):
            nasty.contract.decode(nasty.value)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
