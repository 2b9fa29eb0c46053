"""What is refused while the module that declares an operation type is imported; the message names type and mistake."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from counterfoil import (
    RECEIPT,
    Absent,
    Attempt,
    ByKey,
    ByNature,
    DeclarationError,
    DoneElsewhere,
    Effect,
    Expected,
    Found,
    InLedger,
    InLedgerBatch,
    LatestWins,
    NotAtAll,
    Observation,
    Operations,
    OperationType,
    Policy,
    Proof,
    Receipt,
    Remedy,
    Request,
    Risk,
    Sink,
    Strict,
    Target,
    Unordered,
    hours,
    minutes,
    seconds,
)


@dataclass(frozen=True)
class Customer:
    id: str
    version: int


@dataclass
class Loose:
    id: str


@dataclass(frozen=True)
class Shape:
    id: str


KEYED = Sink("crm", ByKey(hours(24)), request_life=seconds(30), read_lag=seconds(5))
PLACED = Sink("exports", ByNature(), request_life=seconds(30), read_lag=seconds(5))
RAW = Sink("raw", NotAtAll(), request_life=seconds(30), read_lag=seconds(5))
GUARDED = Sink("guarded", NotAtAll(), request_life=seconds(30), read_lag=seconds(5), version_guard=True)


def push(customer: Customer, attempt: Attempt) -> Receipt:
    return Receipt()


def write(connection: object, customer: Customer, attempt: Attempt) -> Receipt:
    return Receipt()


async def write_later(connection: object, customer: Customer, attempt: Attempt) -> Receipt:
    return Receipt()


def write_many(connection: object, items: object) -> None:
    return None


async def write_many_later(connection: object, items: object) -> None:
    return None


def expected(customer: Customer) -> Expected[Shape]:
    return Expected(Shape(customer.id))


async def expected_later(customer: Customer) -> Expected[Shape]:
    return Expected(Shape(customer.id))


def look_up(target: Target[Customer]) -> Observation[Shape]:
    return Absent()


def undo(customer: Customer, found: Found[Any]) -> Request[Any] | None:
    return None


def entity(customer: Customer) -> str:
    return customer.id


PROOF = Proof(expected, look_up)
UNORDERED = Unordered(entity)
LATEST = LatestWins(entity, version=lambda c: c.version)
STRICT = Strict(entity, entity)
REQUEUE: Policy[Any] = Policy(missing=Remedy.REQUEUE)


def declare(**changed: Any) -> OperationType[Any]:
    """A right declaration with what a user changed."""
    right: dict[str, Any] = {
        "name": "sync_customer",
        "owner": "team-crm",
        "payload": Customer,
        "contract": Path("/contracts/sync_customer.avsc"),
        "order": UNORDERED,
        "effect": Effect(push, KEYED, timeout=seconds(20)),
        "proof": PROOF,
    }
    right.update(changed)
    return OperationType(**{name: value for name, value in right.items() if value is not ...})


def effect(sink: Sink) -> Effect[Any]:
    return Effect(push, sink, timeout=seconds(20))


def untyped(value: object) -> Any:
    """What a user without a type checker writes."""
    return value


def wrong(name: str, says: str, declared: Callable[[], object]) -> Any:
    return pytest.param(declared, says, id=name)


@pytest.mark.parametrize(
    ("declared", "says"),
    [
        wrong("owner forgotten", "sync_customer: missing a required argument: 'owner'", lambda: declare(owner=...)),
        wrong("proof forgotten", "sync_customer: missing a required argument: 'proof'", lambda: declare(proof=...)),
        wrong("unknown option", "sync_customer: got an unexpected keyword argument 'onwer'", lambda: declare(onwer="me")),
        wrong("owner empty", "sync_customer: owner must be", lambda: declare(owner=" ")),
        wrong("owner no text", "sync_customer: owner must be a team's name, not None", lambda: declare(owner=None)),
        wrong("owner with a line break", "sync_customer: owner must be", lambda: declare(owner="a\nb")),
        wrong("name in capitals", "OperationType: name must be 1 to 40 lower-case letters", lambda: declare(name="SyncCustomer")),
        wrong("name empty", "name must be 1 to 40 lower-case letters", lambda: declare(name="")),
        wrong("name above 40 characters", "name must be 1 to 40 lower-case letters", lambda: declare(name="a" * 41)),
        wrong("name with a line break at its end", "name must be 1 to 40 lower-case letters", lambda: declare(name="sync\n")),
        wrong("payload a dict", "sync_customer: payload must be a frozen dataclass", lambda: declare(payload=dict)),
        wrong("payload a value", "payload must be a frozen dataclass", lambda: declare(payload=Customer("1", 1))),
        wrong("payload not frozen", "sync_customer: payload must be frozen", lambda: declare(payload=Loose)),
        wrong("contract as text", "contract must be an absolute Path.*not a str", lambda: declare(contract="/c/sync.avsc")),
        wrong("contract relative", "contract must be an absolute Path", lambda: declare(contract=Path("sync.avsc"))),
        wrong("order as a word", "order must be LatestWins", lambda: declare(order="latest")),
        wrong("effect a bare function", "effect must be Effect", lambda: declare(effect=push)),
        wrong("proof a bare function", "proof must be Proof", lambda: declare(proof=look_up)),
        wrong("policy a remedy", "policy must be Policy", lambda: declare(policy=Remedy.REQUEUE)),
        wrong(
            "REQUEUE at a sink with no idempotency",
            "sync_customer: raw makes no repeat harmless: missing cannot be REQUEUE",
            lambda: declare(effect=effect(RAW), policy=REQUEUE),
        ),
        wrong(
            "REQUEUE by nature where another version shares the address",
            "exports makes no repeat harmless",
            lambda: declare(effect=effect(PLACED), order=LATEST, policy=REQUEUE),
        ),
        wrong(
            "REQUEUE of money",
            "money is at risk: missing cannot be REQUEUE",
            lambda: declare(policy=Policy(missing=Remedy.REQUEUE, risk=Risk(money=True))),
        ),
        wrong(
            "REQUEUE of what is hard to repeat",
            "hard to repeat: missing cannot be REQUEUE",
            lambda: declare(policy=Policy(missing=Remedy.REQUEUE, risk=Risk(hard_to_repeat=True))),
        ),
        wrong("REQUEUE without a probe", "nothing probes it: missing cannot", lambda: declare(proof=None, policy=REQUEUE)),
        wrong("REQUEUE on a receipt", "nothing probes it: missing cannot", lambda: declare(proof=RECEIPT, policy=REQUEUE)),
        wrong(
            "REQUEUE of an effect in the ledger",
            "one commit: missing cannot be REQUEUE",
            lambda: declare(effect=InLedger(write), policy=REQUEUE),
        ),
        wrong(
            "REQUEUE of what another program does",
            "another program acts: missing cannot be REQUEUE",
            lambda: declare(effect=DoneElsewhere(KEYED, hours(6)), policy=REQUEUE),
        ),
        wrong(
            "Strict order for what another program does",
            "another program acts: it cannot be held to Strict order",
            lambda: declare(effect=DoneElsewhere(KEYED, hours(6)), order=STRICT),
        ),
        wrong(
            "COMPENSATE without a probe",
            "nothing probes it: divergent cannot be COMPENSATE",
            lambda: declare(proof=None, policy=Policy(divergent=Remedy.COMPENSATE, compensate=undo)),
        ),
        wrong(
            "COMPENSATE without compensate",
            "Policy: divergent is COMPENSATE without compensate=",
            lambda: Policy(divergent=Remedy.COMPENSATE),
        ),
        wrong("async effect in the ledger", "InLedger: call cannot be async", lambda: InLedger(untyped(write_later))),
        wrong("async batch effect", "InLedgerBatch: call cannot be async", lambda: InLedgerBatch(untyped(write_many_later))),
        wrong("async expected", "Proof: expected cannot be async", lambda: Proof(untyped(expected_later), look_up)),
        wrong("two types of one name", "sync_customer: two types of this name", lambda: Operations(declare(), declare())),
        wrong(
            "one sink name declared twice",
            "crm is declared twice, and differently",
            lambda: Operations(declare(), declare(name="other", effect=effect(replace(KEYED, read_lag=minutes(1))))),
        ),
        wrong(
            "one sink name with a horizon widened by replace",
            "crm is declared twice, and differently",
            lambda: Operations(declare(), declare(name="other", effect=effect(replace(KEYED, idempotency=ByKey(hours(48)))))),
        ),
        wrong("something else among the types", "Operations: each argument must be", lambda: Operations(untyped(KEYED))),
    ],
)
def test_a_wrong_type_is_refused_at_import(declared: Callable[[], object], says: str) -> None:
    with pytest.raises(DeclarationError, match=says):
        declared()


@pytest.mark.parametrize(
    "declared",
    [
        pytest.param(declare, id="as in the manual"),
        pytest.param(lambda: declare(policy=REQUEUE), id="REQUEUE at a sink with a key"),
        pytest.param(lambda: declare(effect=effect(PLACED), policy=REQUEUE), id="REQUEUE by nature, Unordered"),
        pytest.param(lambda: declare(effect=effect(GUARDED), order=LATEST, policy=REQUEUE), id="REQUEUE behind a guard"),
        pytest.param(lambda: declare(effect=effect(RAW), proof=None), id="no probe, no key, no requeue"),
        pytest.param(lambda: declare(effect=InLedger(write), proof=RECEIPT, order=STRICT), id="in the ledger"),
        pytest.param(lambda: declare(effect=InLedgerBatch(write_many), proof=RECEIPT), id="in the ledger, by batch"),
        pytest.param(lambda: declare(effect=DoneElsewhere(RAW, hours(6)), order=LATEST), id="done elsewhere"),
        pytest.param(
            lambda: declare(policy=Policy(divergent=Remedy.COMPENSATE, compensate=undo, risk=Risk(money=True))),
            id="money may be compensated",
        ),
    ],
)
def test_a_right_type_is_taken(declared: Callable[[], OperationType[Any]]) -> None:
    of = declared()
    assert Operations(of).find(of.name) is of
    assert Operations(of).find("another") is None


def test_one_sink_may_be_tightened_for_one_type_of_several() -> None:
    tighter = declare(name="other", effect=effect(KEYED.tightened(horizon=hours(12))))
    assert list(Operations(declare(), tighter))[1].sink == tighter.sink


def test_a_type_is_itself_only_and_prints_its_name_only() -> None:
    assert declare() != declare()
    assert repr(declare()) == "OperationType(sync_customer)"


def test_a_request_of_another_types_payload_is_refused_without_showing_it() -> None:
    from counterfoil import Reason, Refused

    with pytest.raises(Refused) as caught:
        Request(declare(), Shape("secret-4711"))
    assert (caught.value.reason, caught.value.path, caught.value.subject) == (Reason.WRONG_TYPE, "payload", "sync_customer")
    assert "4711" not in repr(Request(declare(), Customer("4711", 1)))
