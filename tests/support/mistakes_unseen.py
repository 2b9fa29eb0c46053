"""The planted mistakes that no type checker sees. `expected` for the wrong payload is one of them without `[Customer]` only."""

from __future__ import annotations

from tests.support.mistake import Mistake, Refusal, with_effect

IMPORT, CHECK, PROVE = Refusal.IMPORT, Refusal.CHECK, Refusal.PROVE


UNSEEN: tuple[Mistake, ...] = (
    Mistake("owner empty", False, IMPORT, "owner must be", {"owner": '" "'}),
    Mistake("name in capitals", False, IMPORT, "name must be 1 to 40 lower-case letters", {"name": '"SyncCustomer"'}),
    Mistake(
        "expected for the wrong payload, without [Customer]",
        False,
        CHECK,
        "expected takes another payload",
        {
            "order": "Unordered(identity=lambda c: c.id)",
            "proof": "Proof(wrong, seen)",
        },
        "def wrong(payload: Other) -> Expected[InCrm]:\n    return Expected(InCrm(payload.charge_id))\n"
        "def seen(target: Target[Any]) -> Observation[InCrm]:\n    return Absent()\n",
        generic="",
    ),
    Mistake(
        "payload not frozen",
        False,
        IMPORT,
        "payload must be frozen",
        {
            "payload": "Loose",
            "order": "Unordered(identity=lambda c: c.id)",
            "effect": "Effect(call, CRM, timeout=seconds(20))",
        }
        | {"proof": "None"},
        "@dataclass\nclass Loose:\n    id: str\ndef call(payload: Loose, attempt: Attempt) -> Receipt:\n    return Receipt()\n",
        generic="[Loose]",
    ),
    Mistake(
        "time-out sorted as temporary",
        False,
        IMPORT,
        "proves nothing",
        with_effect("push", more=", errors=Errors(temporary=(TimeoutError,))"),
    ),
    Mistake(
        "one class in both lists",
        False,
        IMPORT,
        "Busy is both temporary and permanent",
        with_effect("push", more=", errors=Errors(temporary=(Busy,), permanent=(Busy,))"),
    ),
    Mistake(
        "horizon widened by tightened()",
        False,
        IMPORT,
        "horizon widened",
        with_effect("push", "CRM.tightened(horizon=hours(48))"),
    ),
    Mistake(
        "horizon widened by replace()",
        False,
        IMPORT,
        "horizon widened",
        with_effect("push", "replace(CRM.tightened(), idempotency=ByKey(hours(48)))"),
        "from dataclasses import replace\n",
    ),
    Mistake(
        "two types of one name",
        False,
        IMPORT,
        "two types of this name",
        after="Operations(sync_customer, sync_customer)",
    ),
    Mistake(
        "REQUEUE at a sink with no idempotency",
        False,
        IMPORT,
        "raw makes no repeat harmless: missing cannot be REQUEUE",
        {**with_effect("push", "RAW"), "policy": "Policy(missing=Remedy.REQUEUE)"},
    ),
    Mistake(
        "REQUEUE of money",
        False,
        IMPORT,
        "money is at risk: missing cannot be REQUEUE",
        {"policy": "Policy(missing=Remedy.REQUEUE, risk=Risk(money=True))"},
    ),
    Mistake(
        "REQUEUE without a probe",
        False,
        IMPORT,
        "nothing probes it: missing cannot be REQUEUE",
        {"proof": "None", "policy": "Policy(missing=Remedy.REQUEUE)"},
    ),
    Mistake(
        "COMPENSATE without compensate",
        False,
        IMPORT,
        "divergent is COMPENSATE without compensate=",
        {"policy": "Policy(divergent=Remedy.COMPENSATE)"},
    ),
    Mistake(
        "payload field unknown to the contract",
        False,
        CHECK,
        "phone",
        {"payload": "Longer", "effect": "Effect(call, CRM, timeout=seconds(20))", "proof": "None"},
        "@dataclass(frozen=True)\nclass Longer:\n    id: str\n    version: int\n    email: str\n    phone: str\n"
        "def call(payload: Longer, attempt: Attempt) -> Receipt:\n    return Receipt()\n",
        generic="[Longer]",
    ),
    Mistake("contract file missing", False, CHECK, "gone.avsc", {"contract": 'CONTRACT.with_name("gone.avsc")'}),
    Mistake(
        "float in the shape",
        False,
        CHECK,
        "float in the shape, at amount",
        {"proof": "Proof(paid, seen)"},
        "@dataclass(frozen=True)\nclass Paid:\n    amount: float\n"
        "def paid(customer: Customer) -> Expected[Paid]:\n    return Expected(Paid(1.0))\n"
        "def seen(target: Target[Customer]) -> Observation[Paid]:\n    return Absent()\n",
    ),
    Mistake(
        "tries that outlast the key horizon",
        False,
        CHECK,
        "tries outlast the key horizon",
        with_effect("push", more=", retry=Retry(max_tries=500)"),
    ),
    Mistake(
        "sync client called inside an async effect",
        False,
        PROVE,
        "",
        with_effect("blocking"),
        "import time\nasync def blocking(customer: Customer, attempt: Attempt) -> Receipt:\n"
        "    time.sleep(60)\n    return Receipt()\n",
    ),
    Mistake(
        "probe that writes",
        False,
        PROVE,
        "",
        {"proof": "Proof(expected, writing)"},
        "ROWS: list[str] = []\ndef writing(target: Target[Customer]) -> Observation[InCrm]:\n"
        "    ROWS.append(target.key)\n    return Absent()\n",
    ),
    Mistake(
        "effect that drops the key",
        False,
        PROVE,
        "",
        with_effect("keyless"),
        "def keyless(customer: Customer, attempt: Attempt) -> Receipt:\n    return Receipt(remote_id=customer.id)\n",
    ),
)
