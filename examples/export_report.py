"""A report is written to an object store, at an address that no other operation has."""

from dataclasses import dataclass
from pathlib import Path

from counterfoil import (
    Absent,
    Asked,
    Attempt,
    ByNature,
    Digest,
    Effect,
    Expected,
    Found,
    Observation,
    OperationType,
    Policy,
    Proof,
    Receipt,
    Remedy,
    Sink,
    Target,
    Unordered,
    minutes,
    seconds,
)
from examples.clients import Head, bucket, render

EXPORTS = Sink("exports", ByNature(), request_life=minutes(5), read_lag=seconds(0))  # one object a path, overwritten whole


@dataclass(frozen=True)
class Report:
    report_id: str
    period: str


@dataclass(frozen=True)
class Stored:
    period: str  # what the payload alone can say; the digest comes from the receipt


def digest(head: Head) -> Digest:
    return Digest("sha256", head.sha256)


async def write(report: Report, attempt: Attempt) -> Receipt:
    data = await render(report.report_id, report.period)
    head = await bucket.put(attempt.result_key, data, meta={"period": report.period, "operation": attempt.key})
    return Receipt(remote_id=attempt.result_key, version=digest(head))


def expected(report: Report) -> Expected[Stored]:
    return Expected(Stored(report.period))


async def look_up(target: Target[Report]) -> Observation[Stored]:
    head = await bucket.head(target.result_key)
    return Found(Stored(head.period), Asked.RESULT_KEY, target.result_key, digest(head)) if head else Absent()


export_report = OperationType[Report](
    name="export_report",
    owner="team-bi",
    payload=Report,
    contract=Path(__file__).parent / "contracts/export_report.avsc",
    order=Unordered(identity=lambda r: (r.report_id, r.period)),
    effect=Effect(write, EXPORTS, timeout=minutes(5)),
    proof=Proof(expected, look_up),
    policy=Policy(missing=Remedy.REQUEUE),
)
