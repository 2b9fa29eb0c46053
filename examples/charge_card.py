"""A card is charged, and a charge that came out differently is refunded by a linked operation."""

from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

from counterfoil import (
    Absent,
    Asked,
    Attempt,
    Backoff,
    ByKey,
    Confirm,
    Effect,
    Errors,
    Expected,
    Found,
    Limits,
    Observation,
    OperationType,
    Policy,
    Proof,
    Receipt,
    Remedy,
    Request,
    Retry,
    Risk,
    Several,
    Sink,
    Target,
    Texts,
    Unordered,
    hours,
    minutes,
    seconds,
)
from examples.clients import Busy, Declined, Paid, psp

CONTRACTS = Path(__file__).parent / "contracts"

PSP = Sink("psp", ByKey(hours(24)), request_life=minutes(2), read_lag=minutes(1), limits=Limits(concurrency=8, per_second=20))
ERRORS = Errors(temporary=(Busy,), permanent=(Declined,))
RETRY = Retry(max_tries=5, backoff=Backoff(seconds(5), cap=hours(1)))  # well inside the 24 hours


@dataclass(frozen=True)
class Charge:
    order_id: UUID
    card_token: str
    amount: Decimal
    currency: str


@dataclass(frozen=True)
class Refund:
    charge_id: str


@dataclass(frozen=True)
class Payment:
    amount: Decimal
    currency: str


@dataclass(frozen=True)
class Returned:
    charge_id: str


def charge(order: Charge, attempt: Attempt) -> Receipt:
    paid = psp.charge(order.card_token, order.amount, order.currency, key=attempt.key, timeout=attempt.timeout)
    return Receipt(remote_id=paid.id)


def give_back(refund: Refund, attempt: Attempt) -> Receipt:
    return Receipt(remote_id=psp.refund(refund.charge_id, key=attempt.key, timeout=attempt.timeout).id)


def payments(target: Target[Charge]) -> Observation[Payment]:
    def seen(paid: Paid) -> Found[Payment]:
        return Found(Payment(Decimal(paid.amount), paid.currency), Asked.KEY, remote_id=paid.id)

    match psp.search(key=target.key):
        case []:
            return Absent()
        case [one]:
            return seen(one)
        case many:
            return Several([seen(p) for p in many])


def refunds(target: Target[Refund]) -> Observation[Returned]:
    found = psp.search(key=target.key)
    return Found(Returned(target.payload.charge_id), Asked.KEY, found[0].id) if found else Absent()


def refund_of(order: Charge, found: Found[Any]) -> Request[Refund] | None:
    return Request(refund_charge, Refund(found.remote_id)) if found.remote_id else None  # None: a person decides


refund_charge = OperationType[Refund](
    name="refund_charge",
    owner="team-pay",
    payload=Refund,
    contract=CONTRACTS / "refund_charge.avsc",
    order=Unordered(identity=lambda r: r.charge_id),
    effect=Effect(give_back, PSP, timeout=seconds(30), errors=ERRORS, retry=RETRY),
    proof=Proof(lambda r: Expected(Returned(r.charge_id)), refunds),
    policy=Policy(risk=Risk(money=True)),
)
charge_card = OperationType[Charge](
    name="charge_card",
    owner="team-pay",
    payload=Charge,
    contract=CONTRACTS / "charge_card.avsc",
    order=Unordered(identity=lambda c: c.order_id),
    effect=Effect(charge, PSP, timeout=seconds(30), errors=ERRORS, retry=RETRY),
    proof=Proof(lambda c: Expected(Payment(c.amount, c.currency)), payments, Confirm(window=minutes(10))),
    policy=Policy(divergent=Remedy.COMPENSATE, compensate=refund_of, risk=Risk(money=True)),
    texts=Texts(
        effect="The card was charged once, with the order's amount in its currency.",
        truth="The order decides what is owed, the provider's ledger what was paid; a difference is settled by team-pay.",
        evidence="The provider's payment, found by our key: its id, amount and currency. The provider keeps it for ten years.",
    ),
)
