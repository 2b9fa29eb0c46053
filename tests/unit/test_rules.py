"""What a declaration means for the decisions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection

from counterfoil.core.effect import Backoff, DoneElsewhere, Effect, InLedger, InLedgerBatch, Retry
from counterfoil.core.operation_type import OperationType
from counterfoil.core.order import LatestWins, Strict, Unordered
from counterfoil.core.policy import Policy, Risk
from counterfoil.core.proof import RECEIPT, Confirm, Proof
from counterfoil.core.records import (
    FOREVER,
    Absent,
    Attempt,
    Expected,
    Item,
    Observation,
    Receipt,
    Target,
    hours,
    minutes,
    seconds,
)
from counterfoil.core.sink import ByKey, ByNature, NotAtAll, Sink
from counterfoil.core.standing import Rules


@dataclass(frozen=True)
class Customer:
    id: str
    version: int


@dataclass(frozen=True)
class Seen:
    id: str


def push(customer: Customer, attempt: Attempt) -> Receipt:
    return Receipt(remote_id=f"{customer.id}-{attempt.number}")


def write(connection: Connection, customer: Customer, attempt: Attempt) -> Receipt | None:
    return None


def write_many(connection: Connection, items: Sequence[Item[Customer]]) -> None:
    return None


def expected(customer: Customer) -> Expected[Seen]:
    return Expected(Seen(customer.id))


def look_up(target: Target[Customer]) -> Observation[Seen]:
    return Absent()


KEYED = Sink("crm", ByKey(hours(24)), request_life=seconds(30), read_lag=seconds(4))
BY_ID = Unordered[Customer](identity=lambda c: c.id)
BY_ENTITY = Unordered[Customer](identity=lambda c: (c.id, c.version), entity=lambda c: c.id)
LATEST = LatestWins[Customer](entity=lambda c: c.id, version=lambda c: c.version)
STRICT = Strict[Customer](identity=lambda c: (c.id, c.version), entity=lambda c: c.id)


def rules(**changed: Any) -> Rules:
    declared: dict[str, Any] = {
        "name": "sync_customer",
        "owner": "team-crm",
        "payload": Customer,
        "contract": Path("/contracts/sync_customer.avsc"),
        "order": BY_ID,
        "effect": Effect(push, KEYED, timeout=seconds(20)),
        "proof": Proof(expected, look_up, Confirm(share=0.5, window=minutes(3))),
    }
    declared.update(changed)
    return _compiled(OperationType[Customer](**declared))


def _compiled(declared: OperationType[Customer]) -> Rules:
    return Rules.of(declared, send_grace=seconds(5), in_ledger_time=minutes(1), review_within=hours(72))


def test_an_outside_effect_carries_its_sinks_promises_and_its_proofs_times() -> None:
    """S10: the sink says what makes a repeat harmless, for how long and how late a request may land."""
    told = rules()
    assert (told.keyed, told.horizon, told.version_guard, told.has_probe) == (True, hours(24), False, True)
    assert (told.timeout, told.landing, told.absence_wait) == (seconds(25), seconds(60), seconds(39))
    assert (told.share, told.window, told.max_tries) == (0.5, minutes(3), 8)
    assert not told.receipt_confirms


def test_a_key_for_good_has_no_horizon() -> None:
    """T2: and no sum with it overflows."""
    told = rules(effect=Effect(push, replace(KEYED, idempotency=ByKey(FOREVER)), timeout=seconds(20)))
    assert (told.keyed, told.horizon) == (True, None)


@pytest.mark.parametrize(
    ("order", "guarded", "keyed", "unique"),
    [
        (BY_ID, False, True, True),
        (BY_ENTITY, False, False, False),
        (LATEST, False, False, False),
        (STRICT, False, False, False),
        (LATEST, True, True, False),
    ],
)
def test_nature_is_a_key_only_where_no_other_operation_has_the_address(
    order: Any, guarded: bool, keyed: bool, unique: bool
) -> None:
    """S1: else an older content could land on a newer one; a version guard refuses that."""
    sink = replace(KEYED, idempotency=ByNature(), version_guard=guarded)
    told = rules(order=order, effect=Effect(push, sink, timeout=seconds(20)))
    assert (told.keyed, told.horizon, told.by_nature_unique) == (keyed, None, unique)


def test_a_sink_that_promises_nothing_has_no_key() -> None:
    """S10: a repeat is a second effect."""
    told = rules(effect=Effect(push, replace(KEYED, idempotency=NotAtAll()), timeout=seconds(20)), proof=None)
    assert (told.keyed, told.horizon, told.has_probe, told.receipt_confirms) == (False, None, False, False)


@pytest.mark.parametrize("effect", [InLedger(write), InLedgerBatch(write_many)])
def test_an_effect_in_the_ledger_is_confirmed_by_its_commit_and_promises_nothing_outside(effect: Any) -> None:
    """S1: never uncertain; its run time is a setting."""
    told = rules(effect=effect, proof=RECEIPT)
    assert (told.in_ledger, told.receipt_confirms, told.keyed, told.timeout) == (True, True, False, minutes(1))
    assert told.request_life == told.read_lag == timedelta(0)


def test_work_done_elsewhere_has_no_tries_of_ours() -> None:
    """S4: it is never sent by us."""
    told = rules(effect=DoneElsewhere(KEYED, outcome_within=hours(6)))
    assert (told.done_elsewhere, told.outcome_within, told.timeout) == (True, hours(6), timedelta(0))


def test_retries_money_and_the_receipt_as_proof_are_taken_from_the_declaration() -> None:
    """S22: tries and waits are the type's."""
    retry = Retry(max_tries=3, backoff=Backoff(seconds(1), cap=seconds(9)))
    told = rules(
        effect=Effect(push, KEYED, timeout=seconds(20), retry=retry),
        proof=RECEIPT,
        policy=Policy[Customer](risk=Risk(money=True)),
    )
    assert (told.max_tries, told.first, told.cap, told.money, told.receipt_confirms) == (3, seconds(1), seconds(9), True, True)
