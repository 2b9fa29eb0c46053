"""What callers ask about their operations and do to them: status, cancel, and the outcome of work that another program did.

On the caller's own connection, in the caller's own transaction; nothing here commits.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import Connection

from counterfoil.core import decisions
from counterfoil.core.acts import Action
from counterfoil.core.decisions import Answered, Ask, Move
from counterfoil.core.errors import Outcome, Refused
from counterfoil.core.identity import result_key
from counterfoil.core.meaning import meaning
from counterfoil.core.operation_type import OperationType
from counterfoil.core.outcomes import AttemptOutcome
from counterfoil.core.reasons import Reason
from counterfoil.core.records import OperationId, Receipt
from counterfoil.core.states import State
from counterfoil.core.status import Cancelled, Recorded, Status
from counterfoil.core.texts import check_why
from counterfoil.core.transitions import Actor
from counterfoil.enqueue import Caller, connection_of
from counterfoil.ledger import acts, standing
from counterfoil.ledger.arrays import prepare
from counterfoil.ledger.decided import Decided
from counterfoil.ledger.moves import Noted, lock
from counterfoil.ledger.names import ledger_of
from counterfoil.ledger.server import login
from counterfoil.ledger.settlement import evidence
from counterfoil.reporting import writer_of
from counterfoil.settings import Settings, load_operations, read_settings

__all__ = ["Cancel", "cancel", "cancel_as", "record_outcome", "status", "statuses"]


def status(caller: Caller, operation_id: OperationId) -> Status:
    """Where an operation stands, as this transaction sees it. Raises Refused (unknown_operation)."""
    found = standing.status_of(connection_of(caller), operation_id)
    if found is None:
        raise Refused(Reason.UNKNOWN_OPERATION, subject=str(operation_id))
    return found


def statuses(caller: Caller, *, correlation_id: str) -> Sequence[Status]:
    """All operations of one correlation_id, in the order in which they were accepted."""
    return standing.statuses_of(connection_of(caller), correlation_id)


def cancel(caller: Caller, operation_id: OperationId, *, reason: str) -> Cancelled:
    """Cancels what has certainly had no effect, and asks for it where that is not known yet. The actor is the database login.

    `reason` is for people: 1 to 500 characters. Raises Refused.
    """
    return cancel_as(Actor.CALLER, caller, operation_id, reason=reason).came_to


class Cancel(NamedTuple):
    """What a cancel came to, and the state in which it met the operation."""

    came_to: Cancelled
    met: State


def cancel_as(by: Actor, caller: Caller, operation_id: OperationId, *, reason: str) -> Cancel:
    """`cancel` for a program or, at the command line, a person, who alone takes an operation out of quarantine (S13)."""
    connection = connection_of(caller)
    check_why(str(operation_id)[:40], reason)
    writer = writer_of(ledger_of(connection))
    number = _number_of(connection, operation_id)
    locked = lock(connection, [number])
    stands = locked.standings[number]
    decided = decisions.cancel(stands, by=by)
    came_to = Cancelled.TOO_LATE
    detail = {"actor": login(connection), "why": reason}
    if isinstance(decided, Ask):
        note = Noted(number, decided.kind, decided.reason, stands.attempt, detail, due_now=decided.due_now)
        writer.tell(connection, [note])
        came_to = Cancelled.ASKED
    elif isinstance(decided, Move):
        writer.write(connection, locked.now, [Decided(stands, locked.facts[number], decided, detail=detail)])
        came_to = Cancelled.NOW
    if by is Actor.PERSON:
        subject, result = str(operation_id), came_to.value
        acts.record(
            connection, writer.ledger, Action.CANCEL, subject, reason, result, number=number, detail={"met": stands.state}
        )
    return Cancel(came_to, stands.state)


def record_outcome(
    caller: Caller, operation_id: OperationId, answer: Receipt | Outcome, *, attempt: int | None = None
) -> Recorded:
    """Records what became of work that another program did (`DoneElsewhere`), or a late callback of a sink.

    `attempt` None means the latest. COUNTED changed the state; KEPT is evidence only. Raises Refused.
    """
    connection = connection_of(caller)
    number = _number_of(connection, operation_id)
    locked = lock(connection, [number])
    stands, facts = locked.standings[number], locked.facts[number]
    settings = read_settings()
    declared = _declared(settings, facts.type)
    answered = _answered(declared, stands.attempt if attempt is None else attempt, answer)
    rules = settings.rules_of(declared)
    sampled = decisions.is_sampled(facts.operation_id, rules.share)
    decided = decisions.record_outcome(rules, stands, answered, sampled=sampled)
    writer = writer_of(ledger_of(connection))
    if isinstance(decided, Move):
        writer.write(connection, locked.now, [Decided(stands, facts, decided, answered.receipt, result_key(operation_id))])
        return Recorded.COUNTED
    writer.tell(connection, [Noted.of(number, decided, answered.attempt, evidence(answered))])
    return Recorded.KEPT


def _number_of(connection: Connection, operation_id: OperationId) -> int:
    prepare(connection)
    named: object = operation_id
    number = standing.number_of(connection, operation_id) if isinstance(named, UUID) else None
    if number is None:
        raise Refused(Reason.UNKNOWN_OPERATION, subject=str(operation_id)[:40])
    return number


def _declared(settings: Settings, name: str) -> OperationType[Any]:
    """The declaration of a type, from the operations that the settings name."""
    found = load_operations(settings.operations).find(name)
    if found is None:
        raise Refused(Reason.UNKNOWN_TYPE, subject=name)
    return found


def _answered(declared: OperationType[Any], attempt: int, answer: Receipt | Outcome) -> Answered:
    if isinstance(answer, Receipt):
        return Answered(attempt, AttemptOutcome.DONE, Reason.RECEIPT.value, answer)
    if isinstance(answer, Outcome):
        outcome, reason, retry_after = meaning(declared.effect.errors, answer)
        return Answered(attempt, outcome, reason, retry_after=retry_after)
    raise Refused(Reason.WRONG_ANSWER, subject=declared.name)
