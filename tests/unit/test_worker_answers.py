"""How an effect's return or exception is sorted: by class, and what proves nothing is uncertain."""

from __future__ import annotations

from datetime import timedelta

import pytest

from counterfoil.core.errors import Permanent, Temporary, Uncertain
from counterfoil.core.failures import Errors
from counterfoil.core.outcomes import AttemptOutcome as O
from counterfoil.core.reasons import Reason
from counterfoil.core.records import Receipt
from counterfoil.streams.worker.answers import WrongAnswer, committed, not_sent, raised, returned, timed_out


class Busy(Exception):
    pass


class VeryBusy(Busy):
    pass


class Rejected(Exception):
    pass


class Halfway(Permanent):
    """A subclass whose author forgot to call the base."""

    def __init__(self) -> None:
        pass


ERRORS = Errors(temporary=(Busy,), permanent=(Rejected,), codes=("card_declined",))


@pytest.mark.parametrize(
    ("error", "outcome", "reason"),
    [
        (Busy("secret"), O.TEMPORARY, "temporary_failure"),
        (VeryBusy(), O.TEMPORARY, "temporary_failure"),
        (Temporary(), O.TEMPORARY, "temporary_failure"),
        (Rejected("4111-SECRET"), O.PERMANENT, "rejected"),
        (Permanent("card_declined"), O.PERMANENT, "card_declined"),
        (Permanent("a text that nobody declared"), O.PERMANENT, "permanent_failure"),
        (Halfway(), O.PERMANENT, "permanent_failure"),
        (Uncertain(), O.UNCERTAIN, "uncertain_answer"),
        (TimeoutError(), O.UNCERTAIN, "timeout"),
        (ConnectionResetError(), O.UNCERTAIN, "connection_lost"),
        (BrokenPipeError(), O.UNCERTAIN, "connection_lost"),
        (ValueError("secret"), O.UNCERTAIN, "unclassified_exception"),
        (SystemExit(3), O.UNCERTAIN, "unclassified_exception"),
        (WrongAnswer(), O.UNCERTAIN, "wrong_answer"),
    ],
)
def test_an_exception_means_what_its_class_was_sorted_as(error: BaseException, outcome: O, reason: str) -> None:
    """S12, S18, D52: closed reasons only, never a text; what nobody sorted is uncertain."""
    answered = raised(ERRORS, 2, 1, error)
    assert (answered.outcome, answered.reason, answered.attempt, answered.revision) == (outcome, reason, 2, 1)
    assert answered.receipt is None


def test_a_sink_s_own_wish_for_a_wait_is_handed_on() -> None:
    assert raised(ERRORS, 1, 1, Temporary(timedelta(seconds=7))).retry_after == timedelta(seconds=7)
    assert raised(ERRORS, 1, 1, Busy()).retry_after is None


@pytest.mark.parametrize("answer", [None, True, {"id": 1}, "r-1", Receipt])
def test_an_answer_that_is_no_receipt_proves_nothing(answer: object) -> None:
    """S2: the effect may exist."""
    assert returned(1, 1, answer).outcome is O.UNCERTAIN
    assert returned(1, 1, answer).reason == Reason.WRONG_ANSWER.value


class Unreadable(Temporary):
    """Raises when anybody reads the sink's wish."""

    def __init__(self) -> None:
        pass

    def __getattribute__(self, name: str) -> object:
        if name == "retry_after":
            raise SystemExit(3)
        return super().__getattribute__(name)


class Unchecked(Receipt):
    """Skips the checks of a receipt."""

    def __post_init__(self) -> None:
        pass


def test_an_outcome_that_cannot_be_read_proves_nothing() -> None:
    """S2, L2: it is answered all the same."""
    answered = raised(ERRORS, 2, 1, Unreadable())
    assert (answered.outcome, answered.reason) == (O.UNCERTAIN, "unclassified_exception")


def test_a_receipt_of_a_class_of_its_own_is_checked_and_made_plain() -> None:
    """S2, L2: what the ledger cannot keep is no receipt."""
    assert type(returned(1, 1, Unchecked("r-1")).receipt) is Receipt
    assert returned(1, 1, Unchecked("r-1")).receipt == Receipt("r-1")
    for unfit in (Unchecked(5), Unchecked("a\0"), Unchecked("r", "1.0")):  # type: ignore[arg-type]
        assert returned(1, 1, unfit).reason == Reason.WRONG_ANSWER.value
        assert returned(1, 1, unfit).outcome is O.UNCERTAIN


def test_a_receipt_is_kept_and_a_time_out_is_uncertain() -> None:
    receipt = Receipt("r-1")
    assert returned(1, 1, receipt).receipt is receipt
    assert returned(1, 1, receipt).outcome is O.DONE
    assert committed(1, 1, None).outcome is O.DONE
    assert timed_out(1, 1).outcome is O.UNCERTAIN
    assert not_sent(1, 1, Reason.NOT_SENT_TIME).outcome is O.NOT_SENT
