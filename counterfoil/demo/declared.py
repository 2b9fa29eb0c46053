"""The two operation types of the demo, declared as a user would. Importing it opens nothing."""

import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from counterfoil import (
    FOREVER,
    Backoff,
    ByKey,
    ByNature,
    Confirm,
    Effect,
    Errors,
    Limits,
    Operations,
    OperationType,
    Proof,
    Retry,
    Sink,
    Unordered,
    minutes,
    seconds,
)
from counterfoil.demo.store import publish
from counterfoil.sinks.fake import Mapped, fake_adapter
from counterfoil.sinks.files import FileStore, Rendering

CONTRACTS = Path(__file__).parent / "contracts"
#: Variables by which the demo tells its workers where the outside systems are.
CRM_URL, STORE_FOLDER = "CF_DEMO_CRM", "CF_DEMO_STORE"
LINES = 40  # of a report

CRM = Sink("crm", ByKey(FOREVER), request_life=seconds(2), read_lag=seconds(0), limits=Limits(concurrency=64))
REPORTS = Sink("reports", ByNature(), request_life=seconds(5), read_lag=seconds(0))


@dataclass(frozen=True)
class Customer:
    id: str
    version: int
    email: str


@dataclass(frozen=True)
class InCrm:
    email: str


@dataclass(frozen=True)
class Report:
    report_id: str
    period: str


def rendered(report: Report) -> Iterator[bytes]:
    """A table whose numbers follow from the payload, so that the same report has the same bytes."""
    yield b"day,turnover\n"
    for day in range(1, LINES + 1):
        drawn = hashlib.sha256(f"{report.report_id}/{report.period}/{day}".encode()).digest()
        yield f"{day},{int.from_bytes(drawn[:4])}\n".encode()


crm = fake_adapter(
    CRM,
    lambda: os.environ[CRM_URL],
    Mapped[Customer, InCrm](
        entity=lambda customer: customer.id,
        fields=lambda customer: {"email": customer.email},
        shape=lambda fields: InCrm(fields["email"]),
        version=lambda customer: customer.version,
    ),
)
reports = FileStore(
    REPORTS,
    lambda: Path(os.environ[STORE_FOLDER]),
    Rendering[Report](rendered, lambda result_key: f"reports/{result_key}.csv"),
    publish=publish,
)

#: Nobody asks this CRM: an uncertain attempt is sent again under its key, and the CRM answers with its first result.
sync_customer = OperationType[Customer](
    name="sync_customer",
    owner="demo",
    payload=Customer,
    contract=CONTRACTS / "sync_customer.avsc",
    order=Unordered(identity=lambda customer: (customer.id, customer.version)),
    effect=Effect(
        crm.effect,
        CRM,
        timeout=seconds(1),
        errors=Errors(codes=crm.codes),
        retry=Retry(max_tries=8, backoff=Backoff(seconds(0.2), cap=seconds(2))),
    ),
    proof=None,
)
#: This store can be asked: what is uncertain waits for the reconciler's probe, and so does what succeeded.
export_report = OperationType[Report](
    name="export_report",
    owner="demo",
    payload=Report,
    contract=CONTRACTS / "export_report.avsc",
    order=Unordered(identity=lambda report: (report.report_id, report.period)),
    effect=Effect(
        reports.effect,
        REPORTS,
        timeout=seconds(5),
        errors=Errors(codes=reports.codes),
        retry=Retry(max_tries=8, backoff=Backoff(seconds(0.2), cap=seconds(2))),
    ),
    proof=Proof(reports.expected, reports.probe, Confirm(window=minutes(2))),
)

OPERATIONS = Operations(sync_customer, export_report)
