"""What is refused in the parts of a declaration: sinks, effects, sorted exceptions, proofs and policies."""

import asyncio
import concurrent.futures
import functools
import socket
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from counterfoil import (
    FOREVER,
    Absent,
    Attempt,
    Backoff,
    ByKey,
    ByNature,
    Confirm,
    DeclarationError,
    DoneElsewhere,
    Effect,
    Errors,
    Fuse,
    InLedger,
    InLedgerBatch,
    LatestWins,
    Limits,
    NotAtAll,
    Permanent,
    Policy,
    ProbeBatch,
    Proof,
    Receipt,
    Remedy,
    Retry,
    Risk,
    Sink,
    Strict,
    Temporary,
    Uncertain,
    Unordered,
    hours,
    minutes,
    seconds,
)

CRM = Sink("crm", ByKey(hours(24)), request_life=seconds(30), read_lag=seconds(5), limits=Limits(8, per_second=20))
RAW = Sink("raw", NotAtAll(), request_life=seconds(30), read_lag=seconds(5))


class Busy(Exception):
    pass


class BusyForLong(Busy):
    pass


class HTTPRejected(Exception):
    pass


def push(payload: object, attempt: Attempt) -> Receipt:
    return Receipt()


async def push_later(payload: object, attempt: Attempt) -> Receipt:
    return Receipt()


class Pusher:
    async def __call__(self, payload: object, attempt: Attempt) -> Receipt:
        return Receipt()


def one(payload: object) -> Any:
    return Absent()


async def one_later(payload: object) -> Any:
    return Absent()


def wrong(label: str, says: str, declared: Callable[..., object], /, *given: Any, **named: Any) -> Any:
    return pytest.param(functools.partial(declared, *given, **named), says, id=label)


@pytest.mark.parametrize(
    ("declared", "says"),
    [
        wrong(
            "a sink without idempotency",
            "crm: missing a required argument: 'idempotency'",
            Sink,
            name="crm",
            request_life=seconds(1),
        ),
        wrong("a sink without read_lag", "Sink: missing a required argument: 'read_lag'", Sink, "crm", NotAtAll(), seconds(1)),
        wrong("a sink's name in capitals", "Sink: name must be 1 to 40 lower-case letters", replace, CRM, name="CRM"),
        wrong("a sink with a word for idempotency", "crm: idempotency must be ByKey", replace, CRM, idempotency="key"),
        wrong("a sink with the class for idempotency", "not the class ByNature", replace, CRM, idempotency=ByNature),
        wrong("read_lag as a number", "crm: read_lag must be a timedelta.*not an int", replace, CRM, read_lag=5),
        wrong("request_life below zero", "request_life must be at least zero", replace, CRM, request_life=seconds(-1)),
        wrong("request_life of a century", "request_life must be at most", replace, CRM, request_life=timedelta(days=36500)),
        wrong("version_guard as a word", "version_guard must be True or False", replace, CRM, version_guard="yes"),
        wrong("limits as a number", "limits must be Limits", replace, CRM, limits=8),
        wrong("a horizon of zero", "ByKey: horizon must be above zero", ByKey, seconds(0)),
        wrong("a horizon as a number", "ByKey: horizon must be a timedelta", ByKey, 24),
        wrong("a key without a horizon", "ByKey: missing a required argument: 'horizon'", ByKey),
        wrong("no concurrency", "concurrency must be a whole number", Limits, 0),
        wrong("a rate of zero", "per_second must be a finite number above zero", Limits, per_second=0),
        wrong("a rate that is not a number", "per_second must be a finite number", Limits, per_second=float("nan")),
        wrong("horizon widened by tightened", "crm: horizon widened", CRM.tightened, horizon=hours(25)),
        wrong("horizon widened to for ever", "crm: horizon widened", CRM.tightened, horizon=FOREVER),
        wrong("horizon widened by replace", "crm: horizon widened", replace, CRM.tightened(), idempotency=ByKey(hours(48))),
        wrong("horizon widened in two steps", "horizon widened", CRM.tightened(horizon=hours(2)).tightened, horizon=hours(3)),
        wrong("a horizon where there is no key", "raw: has no key", RAW.tightened, horizon=hours(1)),
        wrong("request_life shortened", "crm: request_life shortened", CRM.tightened, request_life=seconds(29)),
        wrong("read_lag shortened", "crm: read_lag shortened", CRM.tightened, read_lag=seconds(1)),
        wrong("concurrency widened", "limits.concurrency widened", CRM.tightened, limits=Limits(9, per_second=20)),
        wrong("rate widened", "limits.per_second widened", CRM.tightened, limits=Limits(8, per_second=21)),
        wrong("rate taken away", "limits.per_second widened", CRM.tightened, limits=Limits(8)),
        wrong("tightened by a number", "read_lag must be a timedelta", CRM.tightened, read_lag=9),
        wrong("idempotency changed by replace", "idempotency changed", replace, CRM.tightened(), idempotency=ByNature()),
        wrong("a guard added by replace", "version_guard added", replace, CRM.tightened(), version_guard=True),
        wrong("renamed by replace", "keeps its name", replace, CRM.tightened(), name="other"),
        wrong(
            "effect without the attempt",
            r"Effect: call must take \(payload, attempt\): one",
            Effect,
            one,
            CRM,
            timeout=seconds(1),
        ),
        wrong("effect no function", "Effect: call must be a function", Effect, "push", CRM, timeout=seconds(1)),
        wrong("effect without a time-out", "missing a required argument: 'timeout'", Effect, push, CRM),
        wrong("seconds as a number", r"Effect\(push\): timeout must be a timedelta.*not an int", Effect, push, CRM, timeout=20),
        wrong("a time-out of zero", "timeout must be above zero", Effect, push, CRM, timeout=seconds(0)),
        wrong("the sink's name for the sink", "sink must be a Sink, not a str", Effect, push, "crm", timeout=seconds(1)),
        wrong("errors as a tuple", "errors must be Errors", Effect, push, CRM, timeout=seconds(1), errors=(Busy,)),
        wrong("retry as a number", "retry must be Retry", Effect, push, CRM, timeout=seconds(1), retry=3),
        wrong("in-ledger effect without the connection", "InLedger: call must take", InLedger, push),
        wrong("batch effect with an attempt", "InLedgerBatch: call must take", InLedgerBatch, lambda c, p, a: None),
        wrong("a batch of none", "size must be a whole number", InLedgerBatch, push, size=0),
        wrong("no try", "max_tries must be a whole number", Retry, 0),
        wrong("half a try", "max_tries must be a whole number", Retry, 1.5),
        wrong("True tries", "max_tries must be a whole number", Retry, True),
        wrong("a first wait of zero", "first must be above zero", Backoff, seconds(0)),
        wrong("a cap below the first wait", "cap must be at least first", Backoff, minutes(2), cap=minutes(1)),
        wrong("an outcome within no time", "outcome_within must be above zero", DoneElsewhere, CRM, outcome_within=seconds(0)),
        wrong(
            "a code in capitals",
            "each of codes must be 1 to 63",
            DoneElsewhere,
            CRM,
            hours(1),
            codes=("Rejected",),
        ),
        wrong("codes as a word", "codes must be a tuple", Errors, codes="rejected"),
        wrong("a code twice", "one code twice", Errors, codes=("full", "full")),
        wrong("a free text as a code", "each of codes must be 1 to 63", Errors, codes=("it was full",)),
        wrong("exception not in a tuple", "temporary must be a tuple.*not the class Busy", Errors, temporary=Busy),
        wrong("an instance of an exception", "takes classes of exceptions only", Errors, temporary=(Busy(),)),
        wrong("no exception", "takes classes of exceptions only", Errors, permanent=(int,)),
        wrong("a cancellation", "takes classes of exceptions only", Errors, temporary=(asyncio.CancelledError,)),
        wrong("an outcome sorted", "outcomes are raised", Errors, temporary=(Uncertain,)),
        wrong("one class in both lists", "Busy is both temporary and permanent", Errors, (Busy,), (Busy,)),
        wrong("async entity", "entity cannot be async", LatestWins, one_later, one),
        wrong("version of two arguments", "version must take", LatestWins, one, push),
        wrong("identity a field's name", "identity must be a function", Unordered, "id"),
        wrong("identity a class", "identity must be a function", Unordered, str),
        wrong("Strict without an entity", "missing a required argument: 'entity'", Strict, one),
        wrong("probe of two arguments", r"Proof\(one\): probe must take \(target\): push", Proof, one, push),
        wrong("confirm as a number", "confirm must be Confirm", Proof, one, one, confirm=0.5),
        wrong("business key no function", "business_key must be a function", Proof, one, one, business_key="id"),
        wrong("inventory without a place to go on from", "inventory must take", Proof, one, one, inventory=lambda: iter(())),
        wrong("a probe batch of none", "size must be a whole number", ProbeBatch, one, size=0),
        wrong("a share above one", "share must be a share", Confirm, 1.5),
        wrong("no probe at all", "probes must be a whole number", Confirm, probes=0),
        wrong("a deadline inside the window", "deadline must be longer", Confirm, window=hours(2), deadline=hours(1)),
        wrong("CONFIRM as remedy for missing", "missing must be", Policy, missing=Remedy.CONFIRM),
        wrong("a word as remedy", "missing must be", Policy, missing="requeue"),
        wrong("REQUEUE as remedy for divergent", "divergent must be", Policy, divergent=Remedy.REQUEUE),
        wrong("compensate of one argument", "compensate must take", Policy, compensate=one),
        wrong("enforcing a word", "enforce must be a collection", Policy, enforce="requeue"),
        wrong("enforcing REVIEW", "enforce takes", Policy, enforce=(Remedy.REVIEW,)),
        wrong("enforcing what is not asked for", "missing is not REQUEUE", Policy, enforce=(Remedy.REQUEUE,)),
        wrong("enforcing a compensation not asked for", "not COMPENSATE", Policy, enforce=(Remedy.COMPENSATE,)),
        wrong("risk as a word", "risk must be Risk", Policy, risk="money"),
        wrong("money as a word", "money must be True or False", Risk, money="EUR"),
        wrong("a fuse above one", "not_correct must be a share", Fuse, 5),
        wrong("a fuse of half a requeue", "requeues_an_hour must be", Fuse, requeues_an_hour=0.5),
    ],
)
def test_a_wrong_part_is_refused_at_import(declared: Callable[[], object], says: str) -> None:
    with pytest.raises(DeclarationError, match=says):
        declared()


@pytest.mark.parametrize("field", ["temporary", "permanent"])
@pytest.mark.parametrize(
    "kind",
    [
        TimeoutError,
        socket.timeout,
        asyncio.TimeoutError,
        concurrent.futures.TimeoutError,
        ConnectionError,
        ConnectionResetError,
        BrokenPipeError,
        OSError,
        Exception,
        type("ReadTimeout", (type("TimeoutException", (Exception,), {"__module__": "httpx"}),), {"__module__": "httpx"}),
        type("Timeout", (Exception,), {"__module__": "requests.exceptions"}),
    ],
    ids=lambda kind: f"{kind.__module__}.{kind.__name__}",
)
def test_a_time_out_or_a_lost_connection_cannot_be_sorted(field: str, kind: type[Exception]) -> None:
    lists: Any = {field: (kind,)}
    with pytest.raises(DeclarationError, match=f"{field} cannot be {kind.__name__}.* proves nothing"):
        Errors(**lists)


def test_an_exception_means_what_its_nearest_class_was_sorted_as() -> None:
    errors = Errors(temporary=(Busy,), permanent=(BusyForLong, HTTPRejected), codes=("too_old",))
    assert isinstance(errors.sort(Busy()), Temporary)
    permanent = errors.sort(BusyForLong())
    assert isinstance(permanent, Permanent)
    assert permanent.code == "busy_for_long"
    rejected = errors.sort(HTTPRejected())
    assert isinstance(rejected, Permanent)
    assert rejected.code == "http_rejected"
    assert isinstance(errors.sort(ValueError("4711")), Uncertain)
    assert isinstance(errors.sort(KeyboardInterrupt()), Uncertain)
    raised = Permanent("too_old")
    assert errors.sort(raised) is raised
    assert errors.knows("too_old")
    assert errors.knows("http_rejected")
    assert not errors.knows("other")


@pytest.mark.parametrize(
    ("call", "is_async"),
    [
        pytest.param(push, False, id="a function"),
        pytest.param(push_later, True, id="an async function"),
        pytest.param(functools.partial(push_later), True, id="a partial of one"),
        pytest.param(Pusher(), True, id="an object with an async call"),
        pytest.param(Pusher().__call__, True, id="an async method"),
        pytest.param(functools.partial(Pusher()), True, id="a partial of such an object"),
        pytest.param(lambda p, a: Receipt(), False, id="a lambda"),
    ],
)
def test_an_effect_knows_whether_it_is_awaited(call: Any, is_async: bool) -> None:
    assert Effect(call, CRM, timeout=seconds(1)).is_async is is_async


def test_a_tightened_sink_relies_on_less_and_remembers_what_was_declared() -> None:
    tighter = CRM.tightened(horizon=hours(12), request_life=minutes(1), read_lag=seconds(6), limits=Limits(4, per_second=1))
    again = tighter.tightened(horizon=hours(6))
    assert again.idempotency == ByKey(hours(6))
    assert (again.request_life, again.read_lag, again.limits.concurrency) == (minutes(1), seconds(6), 4)
    assert again.declared is tighter.declared is CRM.declared is CRM


def test_values_are_frozen_and_equal_by_their_fields() -> None:
    assert ByKey(hours(1)) == ByKey(minutes(60))
    assert hash(CRM) == hash(replace(CRM))
    with pytest.raises(AttributeError):
        CRM.name = "other"  # type: ignore[misc]


def test_a_list_of_remedies_cannot_change_after_the_declaration() -> None:
    remedies: Any = [Remedy.REQUEUE]
    policy: Policy[Any] = Policy(missing=Remedy.REQUEUE, enforce=remedies)
    remedies.clear()
    assert policy.enforce == {Remedy.REQUEUE}
