"""The one operation type of `make ready`: a customer in a CRM that keeps our key. Importing it opens nothing."""

import os
from dataclasses import dataclass

from counterfoil import (
    Attempt,
    Backoff,
    ByKey,
    Effect,
    Errors,
    Operations,
    OperationType,
    Receipt,
    Retry,
    Sink,
    Unordered,
    hours,
    seconds,
)
from counterfoil.demo.declared import CONTRACTS
from counterfoil.sinks.fake import FakeClient

CRM_URL = "CF_READY_CRM"  #: variable that names the CRM to the worker
MAX_TRIES = 5

#: The customers, by what becomes of them.
SAVED, BUSY, INVALID, MARKER = "saved", "busy", "invalid", "marker"


@dataclass(frozen=True)
class Customer:
    id: str
    version: int
    email: str


def push(customer: Customer, attempt: Attempt) -> Receipt:
    """One new row for each call, but for a repeat of a key: a second row would be a doubled effect."""
    return FakeClient(os.environ[CRM_URL]).append(customer.id, {"email": customer.email}, attempt, version=customer.version)


sync_customer = OperationType[Customer](
    name="sync_customer",
    owner="ready",
    payload=Customer,
    contract=CONTRACTS / "sync_customer.avsc",
    order=Unordered(identity=lambda customer: (customer.id, customer.version)),
    effect=Effect(
        push,
        Sink("crm", ByKey(hours(24)), request_life=seconds(2), read_lag=seconds(0)),
        timeout=seconds(5),
        errors=Errors(codes=FakeClient.codes),
        retry=Retry(max_tries=MAX_TRIES, backoff=Backoff(seconds(0.2), cap=seconds(1))),
    ),
    proof=None,
)
OPERATIONS = Operations(sync_customer)
