"""What a decision is taken on: how one operation stands in the ledger, and what its type's declaration means.

Both are plain data. `Rules` is compiled once for each type; nothing here calls a function of the user.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from counterfoil.core.effect import Backoff, DoneElsewhere, Effect, InLedger, InLedgerBatch, Retry
from counterfoil.core.order import Ordering, Unordered, ordering_of
from counterfoil.core.outcomes import DOUBTFUL, AttemptOutcome
from counterfoil.core.proof import RECEIPT, Confirm, Proof
from counterfoil.core.records import FOREVER
from counterfoil.core.sink import ByKey, ByNature, Sink
from counterfoil.core.states import State

if TYPE_CHECKING:
    from counterfoil.core.operation_type import OperationType

#: How long a person has to look at a quarantined operation before it is raised again.
REVIEW_WITHIN: Final = timedelta(days=14)
_NONE: Final = timedelta(0)


# Plain slotted dataclasses, not `Value`: one is made for every operation on the hot path, and nobody declares them.
@dataclass(frozen=True, slots=True)
class Standing:
    """One row of `state`. Instants are the ledger's, in UTC."""

    number: int
    state: State
    sequence: int  #: rises by one with every transition
    attempt: int  #: number of the latest attempt; 0: none yet
    tries_left: int  #: after the latest attempt was counted
    revision: int  #: the current one
    generation: int  #: of the idempotency key
    outcome: AttemptOutcome | None = None  #: of the latest attempt; None: none yet
    #: Admission time of the first doubtful attempt: while running, before the latest one; in any other state, that one included.
    doubtful_since: datetime | None = None
    doubtful_key: tuple[int, int] | None = None  #: revision and generation of that attempt
    unresolved: bool = False  #: one of the doubtful attempts is open or uncertain: no verdict has spoken
    admitted_at: datetime | None = None  #: of the latest attempt
    attempt_until: datetime | None = None  #: end of the latest attempt's maximum run time
    session: int | None = None  #: of the worker that holds it; running only
    cancel_asked: bool = False
    accepted_risk: bool = False  #: a person accepted that the next admission may double the effect

    @property
    def doubtful(self) -> bool:
        """Whether an attempt may have reached the sink; while running, one before the latest."""
        if self.doubtful_since is not None:
            return True
        return self.state is not State.RUNNING and self.outcome in DOUBTFUL

    @property
    def doubtful_before(self) -> bool:
        """Whether an attempt before the latest one may have reached the sink, whatever became of the latest."""
        if self.state is State.RUNNING:
            return self.doubtful_since is not None
        return self.doubtful_since is not None and self.doubtful_since != self.admitted_at


@dataclass(frozen=True, slots=True)
class Rules:
    """What a type's declaration means for decisions. Durations are timedeltas; `horizon` None is for ever."""

    name: str
    in_ledger: bool  #: effect and outcome are one commit: never uncertain
    done_elsewhere: bool  #: never sent by us
    has_probe: bool
    receipt_confirms: bool  #: the receipt, or the ledger's own commit, is the evidence
    version_guard: bool
    keyed: bool  #: a repeat under the same key is no second effect, inside the horizon
    horizon: timedelta | None
    by_nature_unique: bool  #: keyed by an address that no other operation has
    request_life: timedelta
    read_lag: timedelta
    send_grace: timedelta
    timeout: timedelta  #: an attempt's maximum run time; outside: its time-out and `send_grace` to wait for its turn
    window: timedelta
    deadline: timedelta
    first: timedelta
    cap: timedelta
    share: float
    max_tries: int
    money: bool
    outcome_within: timedelta | None
    review_within: timedelta
    ordering: Ordering = Ordering.UNORDERED  #: which operations of one entity may run

    @classmethod
    def of(
        cls,
        operation_type: OperationType[Any],
        *,
        send_grace: timedelta,
        in_ledger_time: timedelta,
        review_within: timedelta,
    ) -> Rules:
        """Compile a declaration. `in_ledger_time` is the maximum run time of an effect in the ledger's own database.

        An effect outside may wait `send_grace` for its turn and then still has its whole time-out.
        """
        effect = operation_type.effect
        in_ledger = isinstance(effect, (InLedger, InLedgerBatch))
        sink = effect.sink if isinstance(effect, (Effect, DoneElsewhere)) else None
        retry = Retry(max_tries=1, backoff=Backoff()) if isinstance(effect, DoneElsewhere) else effect.retry
        proof = operation_type.proof
        confirm = proof.confirm if isinstance(proof, Proof) else Confirm()
        keyed, horizon, unique = _key_promise(sink, operation_type.order)
        return cls(
            name=operation_type.name,
            in_ledger=in_ledger,
            done_elsewhere=isinstance(effect, DoneElsewhere),
            has_probe=isinstance(proof, Proof),
            receipt_confirms=in_ledger or proof is RECEIPT,
            version_guard=sink is not None and sink.version_guard,
            keyed=keyed,
            horizon=horizon,
            by_nature_unique=unique,
            request_life=sink.request_life if sink is not None else _NONE,
            read_lag=sink.read_lag if sink is not None else _NONE,
            send_grace=send_grace,
            timeout=effect.timeout + send_grace if isinstance(effect, Effect) else in_ledger_time if in_ledger else _NONE,
            window=confirm.window,
            deadline=confirm.deadline,
            first=retry.backoff.first,
            cap=retry.backoff.cap,
            share=confirm.share,
            max_tries=retry.max_tries,
            money=operation_type.policy.risk.money,
            outcome_within=effect.outcome_within if isinstance(effect, DoneElsewhere) else None,
            review_within=review_within,
            ordering=ordering_of(operation_type.order),
        )

    @property
    def ordered(self) -> bool:
        """Whether operations of one entity wait for each other."""
        return self.ordering is not Ordering.UNORDERED

    @property
    def landing(self) -> timedelta:
        """How long after its admission an attempt may still be applied at the sink."""
        return self.timeout + self.send_grace + self.request_life

    @property
    def absence_wait(self) -> timedelta:
        """How long after the end of an attempt's run time "absent" is not yet "missing"."""
        return self.send_grace + self.request_life + self.read_lag

    @property
    def resendable(self) -> bool:
        """Whether what nobody can probe may be repeated under its key, tries and horizon apart; never where money moves."""
        return self.keyed and not (self.has_probe or self.money or self.done_elsewhere or self.in_ledger)

    def same_key(self, standing: Standing) -> bool:
        """Whether every doubtful attempt bore the key that the next one bears: keys only rise, so the first one tells."""
        return self.keyed and standing.doubtful_key == (standing.revision, standing.generation)

    def inside_horizon(self, standing: Standing, now: datetime) -> bool:
        """Whether the sink still keeps the first doubtful attempt's key when a request sent now lands as late as it can."""
        if not self.same_key(standing) or standing.doubtful_since is None:
            return False
        return self.horizon is None or now - standing.doubtful_since + self.landing < self.horizon

    def key_outlasts(self, standing: Standing, then: datetime) -> bool:
        """The same for a running attempt that has just become doubtful itself, and a request sent `then`."""
        if standing.doubtful_since is not None:
            return self.inside_horizon(standing, then)
        if standing.admitted_at is None:
            return False
        return self.horizon is None or then - standing.admitted_at + self.landing < self.horizon

    def harmless(self, standing: Standing, now: datetime) -> bool:
        """Whether sending again cannot double the effect, whatever the earlier attempts did (S10). A person's risk is apart."""
        return not standing.doubtful or self.version_guard or self.inside_horizon(standing, now)


def _key_promise(sink: Sink | None, order: object) -> tuple[bool, timedelta | None, bool]:
    """Keyed, horizon (None: for ever), and whether nature is the key.

    A put at a derived address is a key without end only where no other operation writes that address: `Unordered` by identity
    alone. With an entity of its own, or an order, several operations may share the address; then only a version guard helps.
    """
    if sink is None:
        return False, None, False
    if isinstance(sink.idempotency, ByKey):
        horizon = sink.idempotency.horizon
        return True, None if horizon == FOREVER else horizon, False
    if isinstance(sink.idempotency, ByNature):
        unique = isinstance(order, Unordered) and order.entity is None
        return unique or sink.version_guard, None, unique
    return False, None, False
