"""Counterfoil keeps one record for every effect that a program has on the world outside its database.

The public names: what a user declares, what an effect and a probe hand over, and what callers do on their own connection, in
their own transaction. Nothing is opened or read when this is imported.
"""

from counterfoil.callers import cancel, record_outcome, status, statuses
from counterfoil.core.effect import Backoff, DoneElsewhere, Effect, InLedger, InLedgerBatch, Retry
from counterfoil.core.errors import (
    CounterfoilError,
    DeclarationError,
    Outcome,
    Permanent,
    Refused,
    Temporary,
    Uncertain,
    Undecodable,
)
from counterfoil.core.failures import Errors
from counterfoil.core.operation_type import Operations, OperationType, Request
from counterfoil.core.order import LatestWins, Strict, Unordered
from counterfoil.core.policy import Fuse, Policy, Remedy, Risk
from counterfoil.core.policy_texts import Texts
from counterfoil.core.proof import RECEIPT, Confirm, ProbeBatch, Proof, ProofOf
from counterfoil.core.reasons import Reason
from counterfoil.core.records import (
    FOREVER,
    Absent,
    Answer,
    Asked,
    Attempt,
    Digest,
    Expected,
    Found,
    Item,
    Key,
    Observation,
    OperationId,
    Part,
    Receipt,
    Several,
    Target,
    Unknown,
    Version,
    hours,
    minutes,
    seconds,
)
from counterfoil.core.sink import ByKey, ByNature, Limits, NotAtAll, Sink
from counterfoil.core.states import State
from counterfoil.core.status import Cancelled, Recorded, Status
from counterfoil.core.wanted import Wanted
from counterfoil.enqueue import enqueue, enqueue_many, operation_id
from counterfoil.settings import Settings, read_settings
from counterfoil.sinks.adapter import Adapter

__all__ = [
    "FOREVER",
    "RECEIPT",
    "Absent",
    "Adapter",
    "Answer",
    "Asked",
    "Attempt",
    "Backoff",
    "ByKey",
    "ByNature",
    "Cancelled",
    "Confirm",
    "CounterfoilError",
    "DeclarationError",
    "Digest",
    "DoneElsewhere",
    "Effect",
    "Errors",
    "Expected",
    "Found",
    "Fuse",
    "InLedger",
    "InLedgerBatch",
    "Item",
    "Key",
    "LatestWins",
    "Limits",
    "NotAtAll",
    "Observation",
    "OperationId",
    "OperationType",
    "Operations",
    "Outcome",
    "Part",
    "Permanent",
    "Policy",
    "ProbeBatch",
    "Proof",
    "ProofOf",
    "Reason",
    "Receipt",
    "Recorded",
    "Refused",
    "Remedy",
    "Request",
    "Retry",
    "Risk",
    "Settings",
    "Several",
    "Sink",
    "State",
    "Status",
    "Strict",
    "Target",
    "Temporary",
    "Texts",
    "Uncertain",
    "Undecodable",
    "Unknown",
    "Unordered",
    "Version",
    "Wanted",
    "cancel",
    "enqueue",
    "enqueue_many",
    "hours",
    "minutes",
    "operation_id",
    "read_settings",
    "record_outcome",
    "seconds",
    "status",
    "statuses",
]
