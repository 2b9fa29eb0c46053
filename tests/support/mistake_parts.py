"""A right declaration in parts, of which each planted mistake changes one. Importing it opens nothing."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from sqlalchemy import Connection

from counterfoil import (
    Absent,
    Asked,
    Attempt,
    ByKey,
    Expected,
    Found,
    Item,
    NotAtAll,
    Observation,
    OperationType,
    Receipt,
    Request,
    Sink,
    Target,
    hours,
    seconds,
)
from examples.export_report import Report, export_report

__all__ = [
    "CONTRACT",
    "CRM",
    "RAW",
    "Any",
    "Busy",
    "Connection",
    "Customer",
    "Decimal",
    "InCrm",
    "Other",
    "Report",
    "Sequence",
    "dataclass",
    "expected",
    "export_report",
    "look_up",
    "push",
    "undo",
    "write_many",
]

CONTRACT = Path(__file__).resolve().parents[2] / "examples/contracts/sync_customer.avsc"
CRM = Sink("crm", ByKey(hours(24)), request_life=seconds(30), read_lag=seconds(5))
RAW = Sink("raw", NotAtAll(), request_life=seconds(30), read_lag=seconds(5))


class Busy(Exception):
    """The sink says that nothing was applied."""


@dataclass(frozen=True)
class Customer:
    id: str
    version: int
    email: str


@dataclass(frozen=True)
class Other:
    charge_id: str


@dataclass(frozen=True)
class InCrm:
    email: str


def push(customer: Customer, attempt: Attempt) -> Receipt:
    return Receipt(remote_id=customer.id)


def write_many(connection: Connection, items: Sequence[Item[Customer]]) -> None:
    return None


def expected(customer: Customer) -> Expected[InCrm]:
    return Expected(InCrm(customer.email), version=customer.version)


def look_up(target: Target[Customer]) -> Observation[InCrm]:
    return Found(InCrm("a@b.c"), Asked.KEY) if target.key else Absent()


def undo(customer: Customer, found: Found[Any]) -> Request[Report] | None:
    kind: OperationType[Report] = export_report
    return Request(kind, Report(customer.id, "2026"))
