"""An old program goes on doing the work; three lines have its outcome tracked and proved."""

from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import create_engine

from counterfoil import (
    Absent,
    Asked,
    DoneElsewhere,
    Expected,
    Found,
    NotAtAll,
    Observation,
    OperationType,
    Permanent,
    Proof,
    Receipt,
    Sink,
    Target,
    Uncertain,
    Unordered,
    enqueue,
    hours,
    minutes,
    operation_id,
    record_outcome,
)
from examples.clients import Rejected, billing

BILLING = Sink("legacy_billing", NotAtAll(), request_life=hours(1), read_lag=minutes(5))


@dataclass(frozen=True)
class Run:
    run_id: str
    customer_id: str


@dataclass(frozen=True)
class Billed:
    run_id: str


def look_up(target: Target[Run]) -> Observation[Billed]:
    invoice = billing.by_run(target.payload.run_id)
    return Found(Billed(invoice.run_id), Asked.BUSINESS_KEY, invoice.number) if invoice else Absent()


adopt_legacy_job = OperationType[Run](
    name="adopt_legacy_job",
    owner="team-bill",
    payload=Run,
    contract=Path(__file__).parent / "contracts/adopt_legacy_job.avsc",
    order=Unordered(identity=lambda r: r.run_id),
    effect=DoneElsewhere(BILLING, outcome_within=hours(6), codes=("rejected",)),
    proof=Proof(lambda r: Expected(Billed(r.run_id)), look_up),
)


def nightly(run: Run) -> None:  # the old program, with three lines added
    engine = create_engine("postgresql+psycopg://ledger")
    with engine.begin() as connection:
        enqueue(connection, adopt_legacy_job, run)
    try:
        number = bill(run)
        answer: Receipt | Permanent | Uncertain = Receipt(remote_id=number)
    except Rejected:
        answer = Permanent("rejected")
    except Exception:  # noqa: BLE001 - whatever it was, it may have been applied
        answer = Uncertain()
    with engine.begin() as connection:
        record_outcome(connection, operation_id(connection, adopt_legacy_job, run), answer)


def bill(run: Run) -> str:
    """The old program's own work, as it always did it; returns the invoice's number."""
    return billing.bill(run.run_id).number
