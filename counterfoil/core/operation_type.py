"""An operation type: one declared value of all that is known about a kind of operation; and all types of a ledger together.

Checks what contradicts itself while the module is imported. Never opens a file, a connection or a contract.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import field, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

from counterfoil.core import checks
from counterfoil.core.effect import DoneElsewhere, Effect, InLedger, InLedgerBatch
from counterfoil.core.errors import DeclarationError, Refused
from counterfoil.core.order import LatestWins, Strict, Unordered
from counterfoil.core.policy import Policy, Remedy
from counterfoil.core.policy_texts import Texts
from counterfoil.core.proof import RECEIPT, ProofOf, ReceiptOnly
from counterfoil.core.reasons import Reason
from counterfoil.core.records import Record
from counterfoil.core.sink import ByKey, ByNature, Sink
from counterfoil.core.value import Declared, Value
from counterfoil.core.wanted import Wanted

if TYPE_CHECKING:
    from sqlalchemy import Connection

__all__ = ["OperationType", "Operations", "Request"]

R = TypeVar("R", bound=Record)


class OperationType(Declared, Generic[R], kw_only=True, eq=False):
    """Write `OperationType[Customer](...)`: then a type checker names the argument that does not fit.

    Raises DeclarationError for everything that contradicts itself without a server or a file.
    """

    name: str  #: [a-z][a-z0-9_]{0,39}; part of topic names, never reused
    owner: str  #: the team that a person asks, 1 to 80 characters
    payload: type[R]  #: a frozen dataclass
    contract: Path  #: absolute; read by `check` and at first use
    order: LatestWins[R] | Strict[R] | Unordered[R]
    effect: Effect[R] | InLedger[R] | InLedgerBatch[R] | DoneElsewhere
    proof: ProofOf[R] | Literal[ReceiptOnly.RECEIPT] | None  #: None, written down: nothing can confirm it
    policy: Policy[R] = Policy()
    #: (payload, connection) -> Wanted, asked before each send, on a read-only connection to the ledger's database, outside the
    #: send's transaction. Quick, since operations wait behind it; where it raises, nothing is sent and it is quarantined.
    still_wanted: Callable[[R, Connection], Wanted] | None = None
    texts: Texts = Texts()  #: for people: the effect, who decides what, the evidence

    @property
    def sink(self) -> Sink | None:
        """Where the effect is; None for one in the ledger's own database."""
        return self.effect.sink if isinstance(self.effect, (Effect, DoneElsewhere)) else None

    @property
    def in_ledger(self) -> bool:
        """Whether the effect is rows in the ledger's own database."""
        return isinstance(self.effect, (InLedger, InLedgerBatch))

    def __repr__(self) -> str:
        return f"OperationType({self.name})"

    def _check(self) -> None:
        checks.a_name("OperationType", "name", self.name)
        checks.instance(self.name, "owner", self.owner, str, "a team's name")
        if not self.owner.strip() or len(self.owner) > 80 or not self.owner.isprintable():
            raise DeclarationError(self.name, "owner must be a team's name of 1 to 80 printable characters")
        _check_payload(self.name, self.payload)
        wanted = "an absolute Path, as Path(__file__).parent / 'name.avsc'"
        checks.instance(self.name, "contract", self.contract, Path, wanted)
        if not self.contract.is_absolute():
            raise DeclarationError(self.name, f"contract must be {wanted}")
        orders = (LatestWins, Strict, Unordered)
        checks.instance(self.name, "order", self.order, orders, "LatestWins(...), Strict(...) or Unordered(...)")
        effects = (Effect, InLedger, InLedgerBatch, DoneElsewhere)
        checks.instance(
            self.name, "effect", self.effect, effects, "Effect(...), InLedger(...), InLedgerBatch(...) or DoneElsewhere(...)"
        )
        if type(self.proof) is ProofOf or not (self.proof is None or self.proof is RECEIPT or isinstance(self.proof, ProofOf)):
            raise DeclarationError(self.name, "proof must be Proof(...), RECEIPT or None")
        checks.instance(self.name, "policy", self.policy, Policy, "Policy(...)")
        checks.instance(self.name, "texts", self.texts, Texts, "Texts(...)")
        if self.still_wanted is not None:
            checks.a_function(self.name, "still_wanted", self.still_wanted, ("payload", "connection"))
            if isinstance(self.effect, DoneElsewhere):
                raise DeclarationError(self.name, "another program acts: nobody would ask still_wanted")
        if isinstance(self.effect, DoneElsewhere) and isinstance(self.order, Strict):
            raise DeclarationError(self.name, "another program acts: it cannot be held to Strict order")
        _check_remedies(self)


class Request(Value, Generic[R]):
    """Another operation, enqueued in the decision's transaction and linked to its cause.

    Raises Refused for another type's payload.
    """

    type: OperationType[R]
    payload: R = field(repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.payload, self.type.payload):
            raise Refused(Reason.WRONG_TYPE, path="payload", subject=self.type.name)


class Operations:
    """All types of a ledger; names and sinks are checked against each other.

    Raises DeclarationError for two types of one name and for one sink name with two declarations.
    """

    def __init__(self, *types: OperationType[Any]) -> None:
        self.types = _check_together(types)
        self._named = {one.name: one for one in types}

    def __iter__(self) -> Iterator[OperationType[Any]]:
        return iter(self.types)

    def __len__(self) -> int:
        return len(self.types)

    def __repr__(self) -> str:
        return f"Operations({', '.join(self._named)})"

    def find(self, name: str) -> OperationType[Any] | None:
        """The type of this name, or None."""
        return self._named.get(name)


def _check_payload(subject: str, payload: object) -> None:
    if not isinstance(payload, type) or not is_dataclass(payload):
        raise DeclarationError(subject, "payload must be a frozen dataclass")
    if not getattr(payload, "__dataclass_params__").frozen:  # noqa: B009 - not in the type stubs
        raise DeclarationError(subject, f"payload must be frozen: @dataclass(frozen=True) on {payload.__name__}")


def _check_remedies(of: OperationType[Any]) -> None:
    """A remedy that could never be applied, or would double the effect, is a mistake now and not on a Sunday."""
    probed = isinstance(of.proof, ProofOf)
    if of.policy.divergent is Remedy.COMPENSATE:
        if not probed:
            raise DeclarationError(of.name, "nothing probes it: divergent cannot be COMPENSATE")
        if of.in_ledger:
            raise DeclarationError(of.name, "row and outcome are one commit: divergent cannot be COMPENSATE")
    if of.policy.missing is not Remedy.REQUEUE:
        return
    if not probed:
        raise DeclarationError(of.name, "nothing probes it: missing cannot be REQUEUE")
    if of.sink is None:
        raise DeclarationError(of.name, "row and outcome are one commit: missing cannot be REQUEUE")
    if isinstance(of.effect, DoneElsewhere):
        raise DeclarationError(of.name, "another program acts: missing cannot be REQUEUE")
    if not _harmless(of.sink, of.order):
        raise DeclarationError(of.name, f"{of.sink.name} makes no repeat harmless: missing cannot be REQUEUE")
    if of.policy.risk.money:
        raise DeclarationError(of.name, "money is at risk: missing cannot be REQUEUE")
    if of.policy.risk.hard_to_repeat:
        raise DeclarationError(of.name, "hard to repeat: missing cannot be REQUEUE")


def _harmless(sink: Sink, order: object) -> bool:
    """Whether sending again can be harmless: a guard, a key, or a nature that no other operation of the type shares."""
    return (
        sink.version_guard
        or isinstance(sink.idempotency, ByKey)
        or (isinstance(sink.idempotency, ByNature) and isinstance(order, Unordered))
    )


def _check_together(types: tuple[OperationType[Any], ...]) -> tuple[OperationType[Any], ...]:
    names: set[str] = set()
    sinks: dict[str, Sink] = {}
    for one in types:
        checks.instance("Operations", "each argument", one, OperationType, "an OperationType")
        if one.name in names:
            raise DeclarationError(one.name, "two types of this name in Operations")
        names.add(one.name)
        if one.sink is not None and sinks.setdefault(one.sink.name, one.sink.declared) != one.sink.declared:
            raise DeclarationError(one.name, f"sink {one.sink.name} is declared twice, and differently")
    return types
