"""Attempts and targets as a worker or a reconciler would hand them to a sink."""

from typing import TypeVar
from uuid import UUID, uuid4

from counterfoil.core.records import Attempt, OperationId, Receipt, Target

P = TypeVar("P")


def an_attempt(*, number: int = 1, operation: UUID | None = None, timeout: float = 10.0, key: str | None = None) -> Attempt:
    operation = operation or uuid4()
    return Attempt(
        operation_id=OperationId(operation),
        number=number,
        key=key or f"cf1-{operation.hex}-r1-g0",
        result_key=str(operation),
        timeout=timeout,
        position=None,
    )


def a_target(payload: P, attempt: Attempt, receipt: Receipt | None = None) -> Target[P]:
    return Target(
        operation_id=attempt.operation_id,
        payload=payload,
        key=attempt.key,
        result_key=attempt.result_key,
        business_key="",
        receipt=receipt,
    )
