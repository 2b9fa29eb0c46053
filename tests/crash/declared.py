"""The operation types of the crash cells, and how their effects misbehave: by the payload's own id, so that a run repeats."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from sqlalchemy import Connection, text

from counterfoil import (
    RECEIPT,
    Attempt,
    Backoff,
    ByKey,
    Effect,
    Errors,
    Expected,
    InLedgerBatch,
    Item,
    NotAtAll,
    Observation,
    Operations,
    OperationType,
    Proof,
    Receipt,
    Retry,
    Sink,
    Strict,
    Target,
    Uncertain,
    Unknown,
    Unordered,
    hours,
    seconds,
)
from counterfoil.sinks.fake import FakeClient
from examples.sync_customer import CONTRACTS, Customer
from examples.upsert_projection import Stock

KEYED_URL, PLAIN_URL = "CRASH_KEYED_SINK", "CRASH_PLAIN_SINK"  #: variables that name the sinks to the workers
TIMEOUT = 2.0  #: seconds
TABLES = "CREATE TABLE stock_log (operation uuid NOT NULL, sku text NOT NULL, on_hand bigint NOT NULL)"
LOG = text("INSERT INTO stock_log (operation, sku, on_hand) VALUES (:operation, :sku, :on_hand)")
SOON = Retry(max_tries=30, backoff=Backoff(seconds(0.2), cap=seconds(1)))


class Busy(Exception):
    """Certainly not applied; later may differ."""


class Rejected(Exception):
    """Certainly not applied, and repeating cannot help."""


CODES = frozenset({"rejected"})  #: reason codes of these types
ERRORS = Errors(temporary=(Busy,), permanent=(Rejected,), codes=FakeClient.codes)


@dataclass(frozen=True)
class InSink:
    email: str


def kind_of(name: str) -> str:
    """`LEDGER/KIND/NUMBER` is the id of every payload: how its effect behaves."""
    return name.split("/")[1]


def _misbehave(name: str, attempt: Attempt) -> None:
    if kind_of(name) == "busy" and attempt.number == 1:
        raise Busy
    if kind_of(name) == "rejected":
        raise Rejected


def _send(url: str, customer: Customer, attempt: Attempt) -> Receipt:
    _misbehave(customer.id, attempt)
    receipt = FakeClient(os.environ[url]).append(customer.id, {"email": customer.email}, attempt, version=customer.version)
    if kind_of(customer.id) == "lost" and attempt.number == 1:
        raise Uncertain  # it was applied, and its answer did not come
    if kind_of(customer.id) == "late":
        threading.Event().wait(TIMEOUT + 1.5)  # the receipt comes when nobody waits for it
    return receipt


def _push_keyed(customer: Customer, attempt: Attempt) -> Receipt:
    return _send(KEYED_URL, customer, attempt)


def _push_once(customer: Customer, attempt: Attempt) -> Receipt:
    return _send(PLAIN_URL, customer, attempt)


def _write(connection: Connection, items: Sequence[Item[Stock]]) -> None:
    rows = [{"operation": each.attempt.operation_id, "sku": each.payload.sku, "on_hand": each.payload.on_hand} for each in items]
    connection.execute(LOG, rows)
    for each in items:
        _misbehave(each.payload.sku, each.attempt)


def _expected(customer: Customer) -> Expected[InSink]:
    return Expected(InSink(customer.email), version=customer.version)


def _unknown(target: Target[Customer]) -> Observation[InSink]:
    return Unknown()


def _timeout() -> timedelta:
    return seconds(TIMEOUT)


KEEPS_KEYS = Sink("keyed", ByKey(hours(24)), request_life=seconds(1), read_lag=seconds(0))
#: The sink keeps our key: what is uncertain is repeated under it.
keyed = OperationType[Customer](
    name="keyed",
    owner="tests",
    payload=Customer,
    contract=CONTRACTS / "sync_customer.avsc",
    order=Unordered(lambda c: (c.id, c.version)),
    effect=Effect(
        _push_keyed,
        KEEPS_KEYS,
        timeout=_timeout(),
        errors=ERRORS,
        retry=SOON,
    ),
    proof=None,
)
#: The operations of one entity are sent one after the other.
ordered = OperationType[Customer](
    name="ordered",
    owner="tests",
    payload=Customer,
    contract=CONTRACTS / "sync_customer.avsc",
    order=Strict(identity=lambda c: (c.id, c.version), entity=lambda c: c.id),
    effect=Effect(
        _push_keyed,
        KEEPS_KEYS,
        timeout=_timeout(),
        errors=ERRORS,
        retry=SOON,
    ),
    proof=None,
)
#: The sink keeps nothing: a second request would be a second effect, so what is uncertain waits for its probe.
once = OperationType[Customer](
    name="once",
    owner="tests",
    payload=Customer,
    contract=CONTRACTS / "sync_customer.avsc",
    order=Unordered(lambda c: (c.id, c.version)),
    effect=Effect(
        _push_once,
        Sink("plain", NotAtAll(), request_life=seconds(1), read_lag=seconds(0)),
        timeout=_timeout(),
        errors=ERRORS,
        retry=SOON,
    ),
    proof=Proof[Customer, InSink](_expected, _unknown),
)
#: The effect is a row beside the ledger; there is no unique index that would hide a second one.
stock = OperationType[Stock](
    name="stock",
    owner="tests",
    payload=Stock,
    contract=CONTRACTS / "upsert_projection.avsc",
    order=Unordered(lambda s: (s.sku, s.version)),
    effect=InLedgerBatch(_write, size=4, errors=ERRORS, retry=SOON),
    proof=RECEIPT,
)
OPERATIONS = Operations(keyed, once, ordered, stock)
