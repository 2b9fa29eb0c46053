"""Every mistake that a user may plant in a declaration, by number: what it is, and where it is refused without a type checker.

Each is a few lines beside a right declaration, of which it changes some arguments. The wrong payload of `expected` counts twice
(with `[Customer]` a type checker sees it, without it is silent), and so does an unknown option (of the type, of a part of it).
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType, ModuleType
from typing import Any, NamedTuple

HEAD = """\
from collections.abc import *
from counterfoil import *
from tests.support.mistake_parts import *
"""
RIGHT: Mapping[str, str] = MappingProxyType(
    {
        "name": '"sync_customer"',
        "owner": '"team-crm"',
        "payload": "Customer",
        "contract": "CONTRACT",
        "order": "LatestWins(entity=lambda c: c.id, version=lambda c: c.version)",
        "effect": "Effect(push, CRM, timeout=seconds(20))",
        "proof": "Proof(expected, look_up)",
        "policy": "Policy()",
    }
)


class Refusal(Enum):
    """Where a user without a type checker is told."""

    IMPORT = "DeclarationError while the module is imported"
    CHECK = "a mistake of `counterfoil.testing.check` and of `counterfoil check`"
    ENQUEUE = "Refused by enqueue"
    CALL = "an exception where the function is called: uncertain for an effect, unknown for a probe, a person for a compensation"
    PROVE = "by nothing that does not run it"


class Mistake(NamedTuple):
    """One planted mistake."""

    what: str
    typed: bool  #: a type checker refuses it
    refusal: Refusal
    says: str  #: part of what is said there
    changed: Mapping[str, str] = MappingProxyType({})  #: arguments of the declaration; "" leaves one out
    before: str = ""  #: lines above the declaration
    after: str = ""  #: lines below it
    generic: str = "[Customer]"

    def source(self) -> str:
        """The user's module."""
        arguments = {**RIGHT, **self.changed}
        given = "\n".join(f"    {name}={value}," for name, value in arguments.items() if value)
        declared = f"sync_customer = OperationType{self.generic}(\n{given}\n)\nOPERATIONS = Operations(sync_customer)\n"
        return f"{HEAD}\n{self.before}\n{declared}\n{self.after}\n"


IMPORT, CHECK, ENQUEUE, CALL, PROVE = Refusal
ONE = 'CUSTOMER = Customer("452", 7, "a@b.c")\n'


def _effect(call: str, sink: str = "CRM", more: str = "") -> Mapping[str, str]:
    return {"effect": f"Effect({call}, {sink}, timeout=seconds(20){more})"}


MISTAKES: Mapping[int, Mistake] = MappingProxyType(
    dict(
        enumerate(
            (
                Mistake(
                    "effect for another payload",
                    True,
                    CHECK,
                    "effect takes another payload",
                    _effect("other"),
                    "def other(payload: Other, attempt: Attempt) -> Receipt:\n    return Receipt()\n",
                ),
                Mistake(
                    "sink without idempotency",
                    True,
                    IMPORT,
                    "missing a required argument: 'idempotency'",
                    before='S = Sink("s", request_life=seconds(1), read_lag=seconds(1))',
                ),
                Mistake(
                    "sink without read_lag",
                    True,
                    IMPORT,
                    "missing a required argument: 'read_lag'",
                    before='S = Sink("s", NotAtAll(), request_life=seconds(1))',
                ),
                Mistake(
                    "LatestWins with a str version",
                    True,
                    ENQUEUE,
                    "version_not_integer",
                    {"order": "LatestWins(entity=lambda c: c.id, version=lambda c: c.email)"},
                    after=ONE + "ENQUEUED = sync_customer, CUSTOMER",
                ),
                Mistake(
                    "probe returns bool",
                    True,
                    CHECK,
                    "probe returns bool",
                    {"proof": "Proof(expected, there)"},
                    "def there(target: Target[Customer]) -> bool:\n    return True\n",
                ),
                Mistake("owner forgotten", True, IMPORT, "missing a required argument: 'owner'", {"owner": ""}),
                Mistake("proof forgotten", True, IMPORT, "missing a required argument: 'proof'", {"proof": ""}),
                Mistake("unknown option of the type", True, IMPORT, "unexpected keyword argument 'onwer'", {"onwer": '"me"'}),
                Mistake(
                    "unknown option inside it",
                    True,
                    IMPORT,
                    "unexpected keyword argument 'retries'",
                    _effect("push", more=", retries=3"),
                ),
                Mistake("owner empty", False, IMPORT, "owner must be", {"owner": '" "'}),
                Mistake("name in capitals", False, IMPORT, "name must be 1 to 40 lower-case letters", {"name": '"SyncCustomer"'}),
                Mistake(
                    "batch effect takes one payload",
                    True,
                    CHECK,
                    "effect takes another payload",
                    {"effect": "InLedgerBatch(write)", "proof": "RECEIPT"},
                    "def write(connection: Connection, customer: Customer) -> None: ...",
                ),
                Mistake(
                    "batch effect takes payloads instead of items",
                    True,
                    CHECK,
                    "effect takes another payload",
                    {"effect": "InLedgerBatch(write)", "proof": "RECEIPT"},
                    "def write(connection: Connection, customers: Sequence[Customer]) -> None: ...",
                ),
                Mistake(
                    "async effect in the ledger",
                    True,
                    IMPORT,
                    "call cannot be async",
                    {"effect": "InLedger(write)", "proof": "RECEIPT"},
                    "async def write(connection: Connection, customer: Customer, attempt: Attempt) -> None: ...",
                ),
                Mistake(
                    "async batch effect",
                    True,
                    IMPORT,
                    "call cannot be async",
                    {"effect": "InLedgerBatch(write)", "proof": "RECEIPT"},
                    "async def write(connection: Connection, items: Sequence[Item[Customer]]) -> None: ...",
                ),
                Mistake(
                    "async expected",
                    True,
                    IMPORT,
                    "expected cannot be async",
                    {"proof": "Proof(later, look_up)"},
                    "async def later(customer: Customer) -> Expected[InCrm]:\n    return expected(customer)\n",
                ),
                Mistake(
                    "effect returns nothing",
                    True,
                    CHECK,
                    "effect returns nothing",
                    _effect("silent"),
                    "def silent(customer: Customer, attempt: Attempt) -> None: ...",
                ),
                Mistake(
                    "effect without the attempt",
                    True,
                    IMPORT,
                    "must take (payload, attempt)",
                    _effect("short"),
                    "def short(customer: Customer) -> Receipt:\n    return Receipt()\n",
                ),
                Mistake(
                    "expected for the wrong payload, with [Customer]",
                    True,
                    CHECK,
                    "expected takes another payload",
                    {"proof": "Proof(wrong, look_up)"},
                    "def wrong(payload: Other) -> Expected[InCrm]:\n    return Expected(InCrm(payload.charge_id))\n",
                ),
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
                    "expected and probe of other shapes",
                    True,
                    CHECK,
                    "expected and probe fill different shapes",
                    {"proof": "Proof(expected, elsewhere)"},
                    "@dataclass(frozen=True)\nclass Elsewhere:\n    email: str\n"
                    "def elsewhere(target: Target[Customer]) -> Observation[Elsewhere]:\n    return Absent()\n",
                ),
                Mistake(
                    "misspelt field in the probe",
                    True,
                    CALL,
                    "TypeError",
                    {"proof": "Proof(expected, misspelt)"},
                    "def misspelt(target: Target[Customer]) -> Observation[InCrm]:\n"
                    '    return Found(InCrm(e_mail="x"), Asked.KEY)\n',
                    "CALLED = lambda: misspelt(None)  # type: ignore[arg-type]",
                ),
                Mistake(
                    "identity from a missing field",
                    True,
                    ENQUEUE,
                    "key_not_allowed",
                    {"order": "Unordered(identity=lambda c: c.ident)"},
                    after=ONE + "ENQUEUED = sync_customer, CUSTOMER",
                ),
                Mistake(
                    "identity with a Decimal",
                    True,
                    ENQUEUE,
                    "key_not_allowed",
                    {"order": "Unordered(identity=lambda c: Decimal(c.version))"},
                    after=ONE + "ENQUEUED = sync_customer, CUSTOMER",
                ),
                Mistake(
                    "CONFIRM as remedy for missing",
                    True,
                    IMPORT,
                    "missing must be Remedy.REQUEUE or Remedy.REVIEW",
                    {"policy": "Policy(missing=Remedy.CONFIRM)"},
                ),
                Mistake("order as a word", True, IMPORT, "order must be LatestWins", {"order": '"latest"'}),
                Mistake(
                    "seconds as a number",
                    True,
                    IMPORT,
                    "timeout must be a timedelta",
                    {"effect": "Effect(push, CRM, timeout=20)"},
                ),
                Mistake("contract as text", True, IMPORT, "contract must be an absolute Path", {"contract": '"/c/sync.avsc"'}),
                Mistake(
                    "exception not in a tuple",
                    True,
                    IMPORT,
                    "temporary must be a tuple of exceptions",
                    _effect("push", more=", errors=Errors(temporary=Busy)"),
                ),
                Mistake(
                    "compensation request with the wrong payload",
                    True,
                    CALL,
                    "Refused",
                    {"policy": "Policy(divergent=Remedy.COMPENSATE, compensate=undo_wrong)"},
                    "def undo_wrong(customer: Customer, found: Found[Any]) -> Request[Report] | None:\n"
                    "    return Request(export_report, customer)\n",
                    ONE + "CALLED = lambda: undo_wrong(CUSTOMER, Found(InCrm('x'), Asked.KEY))",
                ),
                Mistake(
                    "compensate of another type",
                    True,
                    CHECK,
                    "compensate takes another payload",
                    {"policy": "Policy(divergent=Remedy.COMPENSATE, compensate=undo_other)"},
                    "def undo_other(payload: Other, found: Found[Any]) -> Request[Report] | None:\n    return None\n",
                ),
                Mistake(
                    "enqueue of another payload",
                    True,
                    ENQUEUE,
                    "wrong_type",
                    before="def late(connection: Connection) -> None:\n    enqueue(connection, sync_customer, Other('7'))\n",
                    after="ENQUEUED = sync_customer, Other('7')",
                ),
                Mistake(
                    "enqueue on an AsyncSession",
                    True,
                    ENQUEUE,
                    "caller_not_sync",
                    before="from sqlalchemy.ext.asyncio import AsyncSession\n",
                    after=ONE + "def late(session: AsyncSession) -> None:\n    enqueue(session, sync_customer, CUSTOMER)\n"
                    "ENQUEUED = sync_customer, CUSTOMER\nCALLER = AsyncSession()",
                ),
                Mistake("payload a dict", True, IMPORT, "payload must be a frozen dataclass", {"payload": "dict"}),
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
                    "@dataclass\nclass Loose:\n    id: str\n"
                    "def call(payload: Loose, attempt: Attempt) -> Receipt:\n    return Receipt()\n",
                    generic="[Loose]",
                ),
                Mistake(
                    "time-out sorted as temporary",
                    False,
                    IMPORT,
                    "proves nothing",
                    _effect("push", more=", errors=Errors(temporary=(TimeoutError,))"),
                ),
                Mistake(
                    "one class in both lists",
                    False,
                    IMPORT,
                    "Busy is both temporary and permanent",
                    _effect("push", more=", errors=Errors(temporary=(Busy,), permanent=(Busy,))"),
                ),
                Mistake(
                    "horizon widened by tightened()",
                    False,
                    IMPORT,
                    "horizon widened",
                    _effect("push", "CRM.tightened(horizon=hours(48))"),
                ),
                Mistake(
                    "horizon widened by replace()",
                    False,
                    IMPORT,
                    "horizon widened",
                    _effect("push", "replace(CRM.tightened(), idempotency=ByKey(hours(48)))"),
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
                    {**_effect("push", "RAW"), "policy": "Policy(missing=Remedy.REQUEUE)"},
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
                    _effect("push", more=", retry=Retry(max_tries=500)"),
                ),
                Mistake(
                    "sync client called inside an async effect",
                    False,
                    PROVE,
                    "",
                    _effect("blocking"),
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
                    _effect("keyless"),
                    "def keyless(customer: Customer, attempt: Attempt) -> Receipt:\n    return Receipt(remote_id=customer.id)\n",
                ),
            ),
            start=1,
        )
    )
)


def imported(mistake: Mistake) -> Any:
    """The user's module, as an import makes it."""
    module = ModuleType("user_module")
    sys.modules[module.__name__] = module
    exec(compile(mistake.source(), module.__name__, "exec"), vars(module))
    return module
