"""Two operation types for tests that kill processes: a row in the ledger's database, and a call of the fake sink over HTTP."""

from __future__ import annotations

import os
from dataclasses import replace

from counterfoil import (
    Attempt,
    Backoff,
    ByKey,
    Effect,
    InLedgerBatch,
    Operations,
    OperationType,
    Receipt,
    Retry,
    Sink,
    Unordered,
    hours,
    seconds,
)
from counterfoil.sinks.fake import FakeClient
from examples.sync_customer import CONTRACTS, Customer
from examples.upsert_projection import upsert
from tests.support.stock import upsert_projection

SINK_URL = "TEST_SINK_URL"  #: the variable that names the fake sink to the worker
RETRY = Retry(max_tries=30, backoff=Backoff(seconds(0.2), cap=seconds(1)))


def push(customer: Customer, attempt: Attempt) -> Receipt:
    """The customer, appended under our key."""
    client = FakeClient(os.environ[SINK_URL])
    return client.append(customer.id, {"email": customer.email}, attempt, version=customer.version)


push_customer = OperationType[Customer](
    name="push_customer",
    owner="tests",
    payload=Customer,
    contract=CONTRACTS / "sync_customer.avsc",
    order=Unordered(lambda c: (c.id, c.version)),
    effect=Effect(
        push, Sink("fake", ByKey(hours(24)), request_life=seconds(1), read_lag=seconds(0)), timeout=seconds(2), retry=RETRY
    ),
    proof=None,  # an uncertain attempt is repeated under its key
)
put_stock = replace(upsert_projection, effect=InLedgerBatch(upsert, size=200, retry=RETRY))
OPERATIONS = Operations(push_customer, put_stock)
