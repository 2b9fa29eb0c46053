"""Whether an operation's effect exists once, judged from how its effect was called in a rehearsal. It never asks the sink.

So it sees a repeat that the sink does not make harmless, and not an effect that drops the key it was given.
"""

from __future__ import annotations

from counterfoil.callers import status
from counterfoil.core.effect import Effect
from counterfoil.core.records import OperationId
from counterfoil.core.sink import ByKey, NotAtAll
from counterfoil.core.states import State
from counterfoil.testing.rehearsal import Rehearsal

__all__ = ["assert_effect_once"]


def assert_effect_once(rehearsal: Rehearsal, operation_id: OperationId) -> None:
    """Raises AssertionError, with counts and without a payload, where the effect is not known to exist or may exist twice.

    It is known where the operation is succeeded or confirmed. Once means: in the ledger, its commit; outside, one call, or calls
    under one key that the sink remembers, or to one address.
    """
    told = status(rehearsal.connection, operation_id)
    calls = rehearsal.calls(operation_id)
    if told.state not in (State.SUCCEEDED, State.CONFIRMED):
        raise AssertionError(f"{told.type} {operation_id} is {told.state.value}: its effect is not known to exist")
    declared = rehearsal.operations.find(told.type)
    if declared is None or not isinstance(declared.effect, Effect) or len(calls) == 1:
        return
    if not calls:
        raise AssertionError(f"{told.type} {operation_id} is {told.state.value}, and its effect was never called")
    sink = declared.effect.sink
    if sink.version_guard:
        return
    if isinstance(sink.idempotency, NotAtAll):
        raise AssertionError(f"{told.type} {operation_id}: {len(calls)} calls at {sink.name}, where a repeat is a second effect")
    if isinstance(sink.idempotency, ByKey) and (keys := len({call.key for call in calls})) > 1:
        raise AssertionError(f"{told.type} {operation_id}: {len(calls)} calls under {keys} keys at {sink.name}")
