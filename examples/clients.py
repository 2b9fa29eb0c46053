"""Stands for a user's own client libraries: small systems in memory, with the promises that the examples' sinks declare."""

from dataclasses import dataclass, field
from decimal import Decimal
from hashlib import sha256
from itertools import count


class Busy(Exception):
    """The system answered that it did nothing and may do it later."""


class Rejected(Exception):
    """The system answered that it will never do this."""


class Declined(Exception):
    """The bank refused the card."""


@dataclass(frozen=True)
class Row:
    id: str
    version: int
    email: str


@dataclass
class Crm:
    """Keeps one row a customer and remembers each key with its first answer."""

    rows: dict[str, Row] = field(default_factory=dict)
    answers: dict[str, Row] = field(default_factory=dict)

    def put(self, customer_id: str, *, email: str, version: int, key: str, timeout: float) -> Row:
        if timeout <= 0:
            raise Busy
        if "@" not in email:
            raise Rejected
        if key not in self.answers:
            self.answers[key] = self.rows[customer_id] = Row(customer_id, version, email)
        return self.answers[key]

    def by_key(self, key: str) -> Row | None:
        return self.answers.get(key)

    def get(self, customer_id: str) -> Row | None:
        return self.rows.get(customer_id)


@dataclass(frozen=True)
class Head:
    sha256: bytes
    period: str


@dataclass
class Bucket:
    """Keeps one object a path, overwritten whole."""

    heads: dict[str, Head] = field(default_factory=dict)

    async def put(self, path: str, data: bytes, *, meta: dict[str, str]) -> Head:
        self.heads[path] = Head(sha256(data).digest(), meta["period"])
        return self.heads[path]

    async def head(self, path: str) -> Head | None:
        return self.heads.get(path)


async def render(report_id: str, period: str) -> bytes:
    """The report's bytes."""
    return f"{report_id},{period}\n".encode()


@dataclass(frozen=True)
class Paid:
    id: str
    amount: str
    currency: str


@dataclass
class Psp:
    """Moves money once a key."""

    payments: dict[str, Paid] = field(default_factory=dict)
    numbers: "count[int]" = field(default_factory=lambda: count(1))

    def charge(self, card_token: str, amount: Decimal, currency: str, *, key: str, timeout: float) -> Paid:
        if timeout <= 0:
            raise Busy
        if not card_token or amount <= 0:
            raise Declined
        return self.payments.setdefault(key, Paid(f"pay-{next(self.numbers)}", str(amount), currency))

    def refund(self, charge_id: str, *, key: str, timeout: float) -> Paid:
        if timeout <= 0:
            raise Busy
        charged = next((paid for paid in self.payments.values() if paid.id == charge_id), None)
        if charged is None:
            raise Declined
        return self.payments.setdefault(key, Paid(f"ref-{next(self.numbers)}", f"-{charged.amount}", charged.currency))

    def search(self, *, key: str) -> list[Paid]:
        return [self.payments[key]] if key in self.payments else []


@dataclass
class Smtp:
    """Takes every message: a repeat is a second mail."""

    sent: list[tuple[str, str]] = field(default_factory=list)

    def send(self, to: str, template: str, *, message_id: str, timeout: float) -> str:
        if timeout <= 0:
            raise Busy
        self.sent.append((to, template))
        return f"<{message_id}@mail.example.com>"


@dataclass(frozen=True)
class Invoice:
    run_id: str
    number: str


@dataclass
class Billing:
    """The old program's own book."""

    invoices: dict[str, Invoice] = field(default_factory=dict)

    def by_run(self, run_id: str) -> Invoice | None:
        return self.invoices.get(run_id)

    def bill(self, run_id: str) -> Invoice:
        return self.invoices.setdefault(run_id, Invoice(run_id, f"I{len(self.invoices) + 1}"))


crm = Crm()
bucket = Bucket()
psp = Psp()
smtp = Smtp()
billing = Billing()
