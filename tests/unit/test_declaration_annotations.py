"""What the annotations of a type's functions give away without a type checker, and which tries outlast a key."""

import functools
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from counterfoil import (
    FOREVER,
    RECEIPT,
    Absent,
    Attempt,
    Backoff,
    ByKey,
    Effect,
    Expected,
    Found,
    InLedger,
    InLedgerBatch,
    Item,
    LatestWins,
    NotAtAll,
    Observation,
    OperationId,
    OperationType,
    Policy,
    ProbeBatch,
    Proof,
    Receipt,
    Remedy,
    Request,
    Retry,
    Sink,
    Target,
    Unordered,
    hours,
    minutes,
    seconds,
)
from counterfoil.core.annotations import misfits
from counterfoil.core.horizons import outlasts
from counterfoil.core.standing import Rules

if TYPE_CHECKING:
    from sqlalchemy import Connection

CRM = Sink("crm", ByKey(hours(24)), request_life=seconds(30), read_lag=seconds(5))


@dataclass(frozen=True)
class Customer:
    id: str
    version: int


@dataclass(frozen=True)
class Charge:
    id: str


@dataclass(frozen=True)
class InCrm:
    email: str


@dataclass(frozen=True)
class Line:
    amount: Decimal
    weight: float | None


@dataclass(frozen=True)
class WithFloat:
    lines: tuple[Line, ...]


@dataclass
class Loose:
    email: str


def push(customer: Customer, attempt: Attempt) -> Receipt:
    return Receipt()


async def push_async(customer: Customer, attempt: Attempt) -> Receipt:
    return Receipt()


def push_awaitable(customer: Customer, attempt: Attempt) -> Awaitable[Receipt]:
    return push_async(customer, attempt)


def push_anything(customer: Any, attempt: Attempt) -> Receipt:
    return Receipt()


def push_charge(charge: Charge, attempt: Attempt) -> Receipt:
    return Receipt()


def push_for(account: str, customer: Customer, attempt: Attempt) -> Receipt:
    return Receipt()


def push_nothing(customer: Customer, attempt: Attempt) -> None:
    return None


def write(connection: "Connection", customer: Customer, attempt: Attempt) -> Receipt | None:
    return None


def write_charge(connection: "Connection", charge: Charge, attempt: Attempt) -> Receipt | None:
    return None


def write_many(connection: "Connection", items: Sequence[Item[Customer]]) -> None:
    return None


def write_one(connection: "Connection", customer: Customer) -> None:
    return None


def write_payloads(connection: "Connection", customers: Sequence[Customer]) -> None:
    return None


def expected(customer: Customer) -> Expected[InCrm]:
    return Expected(InCrm(""))


def expected_of_charge(charge: Charge) -> Expected[InCrm]:
    return Expected(InCrm(""))


def expected_loose(customer: Customer) -> Expected[Loose]:
    return Expected(Loose(""))


def expected_float(customer: Customer) -> Expected[WithFloat]:
    return Expected(WithFloat(()))


def look_up(target: Target[Customer]) -> Observation[InCrm]:
    return Absent()


async def look_up_async(target: Target[Customer]) -> Found[InCrm] | Absent:
    return Absent()


def look_up_float(target: Target[Customer]) -> Observation[WithFloat]:
    return Absent()


def look_up_loose(target: Target[Customer]) -> Observation[Loose]:
    return Absent()


def look_up_bool(target: Target[Customer]) -> bool:
    return True


def look_up_charge(target: Target[Charge]) -> Observation[InCrm]:
    return Absent()


def look_up_payload(customer: Customer) -> Observation[InCrm]:
    return Absent()


def look_up_many(targets: Sequence[Target[Customer]]) -> Mapping[OperationId, Observation[InCrm]]:
    return {}


def look_up_many_charges(targets: Sequence[Target[Charge]]) -> Mapping[OperationId, Observation[InCrm]]:
    return {}


def undo(customer: Customer, found: Found[Any]) -> Request[Any] | None:
    return None


def undo_charge(charge: Charge, found: Found[Any]) -> Request[Any] | None:
    return None


def text_version(customer: Customer) -> str:
    return ""


def float_identity(customer: Customer) -> float:
    return 0.0


class Client:
    def push(self, customer: Customer, attempt: Attempt) -> Receipt:
        return Receipt()

    def push_charge(self, charge: Charge, attempt: Attempt) -> Receipt:
        return Receipt()


def declare(**changed: Any) -> OperationType[Any]:
    right: dict[str, Any] = {
        "name": "sync_customer",
        "owner": "team-crm",
        "payload": Customer,
        "contract": Path("/contracts/sync_customer.avsc"),
        "order": Unordered[Any](lambda c: c.id),
        "effect": Effect[Any](push, CRM, timeout=seconds(20)),
        "proof": Proof[Any, Any](expected, look_up),
    }
    return OperationType(**{**right, **changed})


def effect(call: Any) -> dict[str, Any]:
    return {"effect": Effect(call, CRM, timeout=seconds(20))}


def proof(expected: Any, probe: Any) -> dict[str, Any]:
    return {"proof": Proof(expected, probe)}


def undone_by(call: Any) -> dict[str, Any]:
    return {"policy": Policy(divergent=Remedy.COMPENSATE, compensate=call)}


def untyped(build: Callable[..., Any], *given: Any) -> Any:
    """What a user without a type checker writes."""
    return build(*given)


@pytest.mark.parametrize(
    ("changed", "rule"),
    [
        pytest.param(effect(push_charge), "effect takes another payload", id="effect for another payload"),
        pytest.param(effect(Client().push_charge), "effect takes another payload", id="a method for another payload"),
        pytest.param(effect(push_nothing), "effect returns nothing", id="effect returns nothing"),
        pytest.param({"effect": untyped(InLedger, write_charge)}, "effect takes another payload", id="in the ledger"),
        pytest.param({"effect": untyped(InLedgerBatch, write_one)}, "effect takes another payload", id="batch of one payload"),
        pytest.param(
            {"effect": untyped(InLedgerBatch, write_payloads)},
            "effect takes another payload",
            id="batch of payloads instead of items",
        ),
        pytest.param(proof(expected_of_charge, look_up), "expected takes another payload", id="expected for another payload"),
        pytest.param(proof(expected, look_up_charge), "probe takes another payload", id="probe for another payload"),
        pytest.param(proof(expected, look_up_payload), "probe takes another payload", id="probe of a payload, not a target"),
        pytest.param(proof(expected, look_up_bool), "probe returns bool", id="probe returns bool"),
        pytest.param(proof(expected, ProbeBatch(look_up_many_charges)), "probe takes another payload", id="a batch probe"),
        pytest.param(proof(expected, look_up_loose), "expected and probe fill different shapes", id="two shapes"),
        pytest.param(proof(expected_loose, look_up_loose), "the shape is no frozen dataclass", id="a loose shape"),
        pytest.param(proof(expected_float, look_up_float), "float in the shape, at lines.weight", id="float in the shape"),
        pytest.param(undone_by(undo_charge), "compensate takes another payload", id="compensate of another type"),
        pytest.param({"order": untyped(LatestWins, text_version, text_version)}, "version returns str", id="a str version"),
        pytest.param({"order": untyped(Unordered, float_identity)}, "identity returns float", id="a float in the identity"),
    ],
)
def test_annotations_that_do_not_fit_the_payload_are_a_mistake(changed: dict[str, Any], rule: str) -> None:
    assert [found.rule for found in misfits(declare(**changed))] == [rule]


@pytest.mark.parametrize(
    "changed",
    [
        pytest.param({}, id="sync"),
        pytest.param(effect(push_async), id="async"),
        pytest.param(effect(push_awaitable), id="a function that returns an awaitable"),
        pytest.param(effect(push_anything), id="any payload"),
        pytest.param(effect(lambda c, a: Receipt()), id="a lambda"),
        pytest.param(effect(Client().push), id="a method"),
        pytest.param(effect(functools.partial(push_for, "account")), id="a partial"),
        pytest.param({"effect": InLedger(write), "proof": RECEIPT}, id="in the ledger, its connection a name for checkers only"),
        pytest.param({"effect": InLedgerBatch(write_many), "proof": None}, id="in the ledger, by batch"),
        pytest.param(proof(expected, look_up_async), id="an async probe that names what it can see"),
        pytest.param(proof(expected, ProbeBatch(look_up_many)), id="a batch probe"),
        pytest.param(undone_by(undo), id="a compensation"),
    ],
)
def test_annotations_that_fit_are_no_mistake(changed: dict[str, Any]) -> None:
    assert list(misfits(declare(**changed))) == []


def outlasting(horizon: timedelta, retry: Retry) -> str | None:
    sink = Sink("crm", ByKey(horizon), request_life=seconds(30), read_lag=seconds(0))
    return outlasts(declare(effect=Effect[Any](push, sink, timeout=seconds(20), retry=retry)), seconds(5))


def test_tries_that_outlast_the_key_horizon_are_a_mistake() -> None:
    # Three tries, each 20 s and 5 s for its turn: 25 s + 2 s + 25 s + 4 s until the last is admitted; 60 s more to land.
    retry = Retry(3, Backoff(seconds(2), cap=minutes(1)))
    assert outlasting(seconds(116), retry) == "tries outlast the key horizon"
    assert outlasting(seconds(117), retry) is None
    assert outlasting(seconds(60), Retry(1)) == "one attempt outlasts the key horizon"
    assert outlasting(seconds(61), Retry(1)) is None
    assert outlasting(FOREVER, Retry(1_000)) is None


def test_a_type_without_a_key_has_no_horizon_to_outlast() -> None:
    raw = Sink("raw", NotAtAll(), request_life=seconds(30), read_lag=seconds(0))
    assert outlasts(declare(effect=Effect[Any](push, raw, timeout=hours(9))), seconds(5)) is None
    assert outlasts(declare(effect=InLedger(write)), seconds(5)) is None


def test_the_check_and_the_processes_reckon_with_the_same_margin() -> None:
    """S10: what `check` lets through may be sent again until a request sent then could outlive the key."""
    sink = Sink("crm", ByKey(seconds(61)), request_life=seconds(30), read_lag=seconds(0))
    declared = declare(effect=Effect[Any](push, sink, timeout=seconds(20), retry=Retry(1)))
    rules = Rules.of(declared, send_grace=seconds(5), in_ledger_time=minutes(1), review_within=hours(72))
    assert outlasts(declared, seconds(5)) is None
    assert rules.horizon is not None
    assert timedelta(0) < rules.horizon - rules.landing <= seconds(1)
