"""Types whose sinks bound them: by calls in flight, by calls a second, and one that may be away."""

from __future__ import annotations

import os
from dataclasses import replace

from counterfoil import ByKey, Effect, Limits, Operations, Retry, Sink, hours, seconds
from counterfoil.core.effect import Backoff
from counterfoil.sinks.fake import Mapped, fake_adapter
from examples.upsert_projection import Stock
from tests.support.worked import ERRORS, SINK_URL, OnHand, in_batches, push_async

MODULE = "tests.support.limited_types:OPERATIONS"

NARROW = Sink("narrow", ByKey(hours(24)), request_life=seconds(1), read_lag=seconds(0), limits=Limits(concurrency=3))
PACED = Sink(
    "paced", ByKey(hours(24)), request_life=seconds(1), read_lag=seconds(0), limits=Limits(concurrency=8, per_second=100.0)
)
TRIES = 4
_RETRY = Retry(max_tries=TRIES, backoff=Backoff(seconds(0.5), cap=seconds(2)))


def _adapter(sink: Sink) -> Effect[Stock]:
    mapped = Mapped[Stock, OnHand](lambda s: s.sku, lambda s: {"on_hand": s.on_hand}, lambda fields: OnHand(fields["on_hand"]))
    adapter = fake_adapter(sink, lambda: os.environ[SINK_URL], mapped)
    return Effect(adapter.effect, sink, timeout=seconds(4), errors=ERRORS, retry=_RETRY)


narrow = replace(push_async, name="narrow", effect=_adapter(NARROW))
paced = replace(push_async, name="paced", effect=_adapter(PACED))
OPERATIONS = Operations(narrow, paced, in_batches)
