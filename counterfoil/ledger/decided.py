"""What there is to save of one decision: how the operation stood, what is moved, and what was answered.

Plain values; nothing is decided and nothing is written here.
"""

from typing import Any, NamedTuple
from uuid import UUID

from counterfoil.core.decisions import Move
from counterfoil.core.records import Receipt
from counterfoil.core.standing import Standing


class Facts(NamedTuple):
    """What a move's state record and dead letter say of the operation, beside the move itself."""

    operation_id: UUID
    type: str
    entity: str
    version: str | None
    remote_id: str | None = None
    traceparent: str | None = None


class Decided(NamedTuple):
    """One decision to save: on which operation, as it stood, and what was answered."""

    standing: Standing
    facts: Facts
    move: Move
    receipt: Receipt | None = None
    result_key: str | None = None
    detail: dict[str, Any] | None = None
