"""The records between a user's functions and ours: what they refuse, and what they never print (S18)."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from counterfoil import (
    Asked,
    Attempt,
    DeclarationError,
    Digest,
    Expected,
    Found,
    Item,
    OperationId,
    Permanent,
    Reason,
    Receipt,
    Refused,
    Several,
    Target,
    Temporary,
    Undecodable,
)

SECRET = "planted-4711"


@dataclass(frozen=True)
class Shape:
    text: str


ATTEMPT = Attempt(OperationId(UUID(int=1)), 1, SECRET, SECRET, 20.0, None)


@pytest.mark.parametrize(
    "record",
    [
        pytest.param(ATTEMPT, id="attempt"),
        pytest.param(Item(Shape(SECRET), ATTEMPT), id="item"),
        pytest.param(Expected(Shape(SECRET)), id="expected"),
        pytest.param(Target(ATTEMPT.operation_id, Shape(SECRET), SECRET, SECRET, SECRET, None), id="target"),
        pytest.param(Found(Shape(SECRET), Asked.KEY), id="found"),
        pytest.param(Several([Found(Shape(SECRET), Asked.KEY)]), id="several"),
        pytest.param(Permanent(f"a text with {SECRET}"), id="permanent with a text for a code"),
    ],
)
def test_no_payload_and_no_key_is_printed(record: object) -> None:
    """S18."""
    assert SECRET not in repr(record) + str(record) + f"{record!s:.500}"


@pytest.mark.parametrize(
    ("given", "path", "reason"),
    [
        pytest.param({"remote_id": f"{SECRET}\0"}, "remote_id", Reason.FORBIDDEN_TEXT, id="U+0000"),
        pytest.param({"remote_id": f"{SECRET}\ud800"}, "remote_id", Reason.FORBIDDEN_TEXT, id="lone surrogate"),
        pytest.param({"remote_id": "x" * 513}, "remote_id", Reason.TEXT_TOO_LONG, id="513 characters"),
        pytest.param({"remote_id": 4711}, "remote_id", Reason.WRONG_TYPE, id="a number for an id"),
        pytest.param({"version": 2**63}, "version", Reason.NUMBER_OUT_OF_RANGE, id="version past 64 bits"),
        pytest.param({"version": -(2**63) - 1}, "version", Reason.NUMBER_OUT_OF_RANGE, id="version below 64 bits"),
        pytest.param({"version": "7"}, "version", Reason.WRONG_TYPE, id="version a text (D82)"),
        pytest.param({"version": True}, "version", Reason.WRONG_TYPE, id="version a bool"),
        pytest.param({"sink_time": datetime(2026, 7, 1)}, "sink_time", Reason.NAIVE_DATETIME, id="naive time"),  # noqa: DTZ001
        pytest.param({"sink_time": "now"}, "sink_time", Reason.WRONG_TYPE, id="time a text"),
    ],
)
def test_a_receipt_that_cannot_be_kept_is_refused_by_the_fields_name(given: dict[str, Any], path: str, reason: Reason) -> None:
    with pytest.raises(Refused) as caught:
        Receipt(**given)
    assert (caught.value.reason, caught.value.path) == (reason, path)
    assert path in str(caught.value)
    assert reason.sentence in str(caught.value)
    assert reason.advice in str(caught.value)
    assert SECRET not in str(caught.value)


def test_a_receipt_of_what_sinks_answer_is_taken() -> None:
    assert Receipt("käse-☃-" + "x" * 505, -(2**63), datetime.now(UTC)).version == -(2**63)
    assert Receipt(version=Digest("sha256", b"1" * 32)) == Receipt(version=Digest("sha256", b"1" * 32))
    assert Receipt() == Receipt(None, None, None)


def test_what_a_probe_found_is_held_to_the_same_rules() -> None:
    wrong: Any = "key"
    with pytest.raises(Refused, match="asked"):
        Found(Shape(""), wrong)
    with pytest.raises(Refused, match="remote_id"):
        Found(Shape(""), Asked.KEY, "\0")
    with pytest.raises(Refused, match="version"):
        Found(Shape(""), Asked.KEY, version=2**64)
    with pytest.raises(Refused, match="version"):
        Expected(Shape(""), version=2**64)
    for algorithm, value in (("", b"1"), ("sha256", b""), ("sha256", b"1" * 65)):
        with pytest.raises(Refused):
            Digest(algorithm, value)
    text: Any = "abc"
    with pytest.raises(Refused, match="value"):
        Digest("sha256", text)


def test_a_wish_for_later_never_overflows_a_due_time() -> None:
    """D62."""
    assert Temporary(timedelta.max).retry_after == timedelta(days=366)
    assert Temporary(timedelta(seconds=-1)).retry_after is None
    assert Temporary(timedelta(seconds=9)).retry_after == timedelta(seconds=9)
    assert Temporary().retry_after is None


def test_an_error_says_what_happened_to_which_operation_and_what_to_do() -> None:
    refused = Refused(Reason.NAIVE_DATETIME, path="lines[3].at", subject="sync_customer")
    assert str(refused) == (f"sync_customer: {Reason.NAIVE_DATETIME.sentence} (at lines[3].at). {Reason.NAIVE_DATETIME.advice}")
    undecodable = Undecodable(Reason.UNDECODABLE_VALUE, "email")
    assert (undecodable.reason, undecodable.path) == (Reason.UNDECODABLE_VALUE, "email")
    assert "(at email)" in str(undecodable)
    declared = DeclarationError("crm", "horizon widened")
    assert (str(declared), declared.subject, declared.mistake) == ("crm: horizon widened", "crm", "horizon widened")


def test_a_wish_that_is_no_timedelta_is_no_doubt_about_the_effect() -> None:
    """S10: `Temporary(5)` still says that nothing was applied."""
    assert Temporary(5).retry_after is None  # type: ignore[arg-type]  # what a user without a checker writes
