"""What an outside system promises about repeats, late requests and reads; and how a type may rely on less of it.

Never talks to a sink: these are the promises, not the calls.
"""

from dataclasses import replace
from datetime import timedelta

from counterfoil.core import checks
from counterfoil.core.errors import DeclarationError
from counterfoil.core.records import FOREVER
from counterfoil.core.value import Declared

__all__ = ["ByKey", "ByNature", "Limits", "NotAtAll", "Sink"]


class ByKey(Declared):
    """The sink remembers our idempotency key and answers a repeat with its first result."""

    horizon: timedelta  #: from the first attempt that may have arrived; above zero; FOREVER if for good

    def _check(self) -> None:
        if self.horizon is not FOREVER:
            checks.a_duration("ByKey", "horizon", self.horizon, above_zero=True, at_most=FOREVER)


class ByNature(Declared):
    """The same call leaves the same thing behind: a put at a derived address."""


class NotAtAll(Declared):
    """A repeat is a second effect."""


class Limits(Declared):
    """First values, shared by all workers of a ledger; the ledger's settings win."""

    concurrency: int = 16  #: calls in flight, of all workers together; 1 to 10,000
    per_second: float | None = None  #: calls a second, of all workers together; above zero; None: not limited

    def _check(self) -> None:
        checks.a_whole_number("Limits", "concurrency", self.concurrency, 1, 10_000)
        if self.per_second is not None:
            checks.a_number("Limits", "per_second", self.per_second)


def in_force(
    concurrency: int | None, per_second: float | None, declared: int, declared_rate: float | None
) -> tuple[int, float | None]:
    """The limits that hold: the ledger's, where a person has set them (`concurrency` is there), else the declared ones."""
    return (declared, declared_rate) if concurrency is None else (concurrency, per_second)


class Sink(Declared):
    """An outside system. No defaults where a wrong guess doubles an effect.

    Durations are timedeltas from zero to 3660 days. Raises DeclarationError, also where a tightened sink promises more than the
    one it was made from.
    """

    name: str  #: 1 to 40 lower-case letters, digits, _ and -, a letter first
    idempotency: ByKey | ByNature | NotAtAll
    request_life: timedelta  #: how long after we stopped waiting a request may still be applied
    read_lag: timedelta  #: how long an applied one may be invisible to a read
    version_guard: bool = False  #: it refuses a version that is not newer than its own
    limits: Limits = Limits()
    loosest: "Sink | None" = None  #: what it was made from; set by `tightened` only

    def tightened(
        self,
        *,
        horizon: timedelta | None = None,
        request_life: timedelta | None = None,
        read_lag: timedelta | None = None,
        limits: Limits | None = None,
    ) -> "Sink":
        """The same sink for one type that relies on less: a shorter horizon, a longer request life or read lag, lower limits.

        Raises DeclarationError where a value promises more.
        """
        idempotency = self.idempotency
        if horizon is not None:
            if not isinstance(idempotency, ByKey):
                raise DeclarationError(self.name, "has no key, so no horizon to tighten")
            idempotency = ByKey(horizon)
        tighter = replace(
            self,
            idempotency=idempotency,
            request_life=self.request_life if request_life is None else request_life,
            read_lag=self.read_lag if read_lag is None else read_lag,
            limits=self.limits if limits is None else limits,
            loosest=self.declared,
        )
        _promises_no_more(tighter, self)
        return tighter

    @property
    def declared(self) -> "Sink":
        """The sink as declared, before any `tightened`."""
        return self.loosest or self

    def _check(self) -> None:
        checks.a_name("Sink", "name", self.name, hyphen=True)
        kinds = (ByKey, ByNature, NotAtAll)
        checks.instance(self.name, "idempotency", self.idempotency, kinds, "ByKey(horizon), ByNature() or NotAtAll()")
        checks.a_duration(self.name, "request_life", self.request_life)
        checks.a_duration(self.name, "read_lag", self.read_lag)
        checks.yes_or_no(self.name, "version_guard", self.version_guard)
        checks.instance(self.name, "limits", self.limits, Limits, "Limits(...)")
        if self.loosest is not None:
            checks.instance(self.name, "loosest", self.loosest, Sink, "set by tightened() only")
            if self.loosest.loosest is not None:
                raise DeclarationError(self.name, "loosest is set by tightened() only")
            _promises_no_more(self, self.loosest)


def _promises_no_more(sink: Sink, declared: Sink) -> None:
    """A type may tighten what its sink promises, never widen it: a promise that nobody keeps doubles an effect."""
    if sink.name != declared.name:
        raise DeclarationError(sink.name, f"made from {declared.name}: a tightened sink keeps its name")
    if type(sink.idempotency) is not type(declared.idempotency):
        raise DeclarationError(sink.name, "idempotency changed: declare another sink")
    if isinstance(sink.idempotency, ByKey) and isinstance(declared.idempotency, ByKey):
        _no_more(sink.name, "horizon", sink.idempotency.horizon > declared.idempotency.horizon)
    if sink.version_guard and not declared.version_guard:
        raise DeclarationError(sink.name, "version_guard added: declare it on the sink itself")
    for field, less in (
        ("request_life", sink.request_life < declared.request_life),
        ("read_lag", sink.read_lag < declared.read_lag),
    ):
        if less:
            raise DeclarationError(sink.name, f"{field} shortened: a shorter one promises more")
    _no_more(sink.name, "limits.concurrency", sink.limits.concurrency > declared.limits.concurrency)
    ours, theirs = sink.limits.per_second, declared.limits.per_second
    _no_more(sink.name, "limits.per_second", theirs is not None and (ours is None or ours > theirs))


def _no_more(sink: str, field: str, more: bool) -> None:
    if more:
        raise DeclarationError(sink, f"{field} widened")
