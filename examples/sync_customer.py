"""A customer is kept in a CRM: the newest version wins, and the CRM remembers our idempotency key."""

from dataclasses import dataclass
from pathlib import Path

from counterfoil import (
    Absent,
    Asked,
    Attempt,
    ByKey,
    Effect,
    Errors,
    Expected,
    Found,
    LatestWins,
    Observation,
    OperationType,
    Policy,
    Proof,
    Receipt,
    Remedy,
    Sink,
    Target,
    hours,
    seconds,
)
from examples.clients import Busy, Rejected, crm

CONTRACTS = Path(__file__).parent / "contracts"

CRM = Sink("crm", ByKey(hours(24)), request_life=seconds(30), read_lag=seconds(5))


@dataclass(frozen=True)
class Customer:
    id: str
    version: int
    email: str


@dataclass(frozen=True)
class InCrm:
    email: str


def push(customer: Customer, attempt: Attempt) -> Receipt:
    row = crm.put(customer.id, email=customer.email, version=customer.version, key=attempt.key, timeout=attempt.timeout)
    return Receipt(remote_id=row.id, version=row.version)


def expected(customer: Customer) -> Expected[InCrm]:
    return Expected(InCrm(customer.email), version=customer.version)


def look_up(target: Target[Customer]) -> Observation[InCrm]:
    if row := crm.by_key(target.key):
        return Found(InCrm(row.email), Asked.KEY, row.id, row.version)
    if row := crm.get(target.payload.id):
        return Found(InCrm(row.email), Asked.BUSINESS_KEY, row.id, row.version)
    return Absent()


sync_customer = OperationType[Customer](
    name="sync_customer",
    owner="team-crm",
    payload=Customer,
    contract=CONTRACTS / "sync_customer.avsc",
    order=LatestWins(entity=lambda c: c.id, version=lambda c: c.version),
    effect=Effect(push, CRM, timeout=seconds(20), errors=Errors(temporary=(Busy,), permanent=(Rejected,))),
    proof=Proof(expected, look_up),
    policy=Policy(missing=Remedy.REQUEUE),
)
