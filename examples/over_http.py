"""A customer is put to a CRM over HTTP: one request an attempt, with our idempotency key in a header."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from counterfoil import ByKey, Effect, Errors, Expected, OperationType, Receipt, Sink, Unordered, hours, seconds
from counterfoil.sinks.http import HttpOptions, HttpSink, Write
from examples.sync_customer import Customer, InCrm


def credentials() -> Mapping[str, str]:
    return {"Authorization": f"Bearer {os.environ['CRM_TOKEN']}"}  # asked for at each request


def received(answer: Any) -> Receipt:
    return Receipt(remote_id=answer["id"], version=answer["version"])  # whatever it raises: uncertain


CRM: HttpSink[Customer, InCrm] = HttpSink(
    Sink("crm_http", ByKey(hours(24)), request_life=seconds(30), read_lag=seconds(5)),
    lambda: os.environ["CRM_URL"],  # nothing is opened when this is imported
    Write(
        path=lambda customer: f"/customers/{quote(customer.id, safe='')}",
        body=lambda customer, attempt: {"email": customer.email, "version": customer.version},
        receipt=received,
        method="PUT",
    ),
    expected=lambda customer: Expected(InCrm(customer.email), version=customer.version),
    options=HttpOptions(headers=credentials),
)

put_customer = OperationType[Customer](
    name="put_customer",
    owner="team-crm",
    payload=Customer,
    contract=Path(__file__).parent / "contracts/sync_customer.avsc",
    order=Unordered(identity=lambda customer: (customer.id, customer.version)),
    effect=Effect(CRM.effect, CRM.sink, timeout=seconds(20), errors=Errors(codes=CRM.codes)),
    proof=None,  # `reads` would say how the CRM is asked, for a Proof(CRM.expected, CRM.probe)
)
