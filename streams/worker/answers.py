"""What an effect's return or exception comes to: the sorting of answers, by class alone, never by a text.

Pure. What proves nothing is uncertain: a time-out, a lost connection, an exception that nobody sorted, an answer that is no
receipt. For effects in the ledger's own transaction core makes temporary of uncertain, since nothing is left of them.
"""

from __future__ import annotations

from counterfoil.core.decisions import Answered
from counterfoil.core.errors import Uncertain
from counterfoil.core.failures import Errors
from counterfoil.core.meaning import meaning
from counterfoil.core.outcomes import AttemptOutcome
from counterfoil.core.reasons import Reason
from counterfoil.core.records import Receipt
from counterfoil.streams.worker.looking import looked_at


class WrongAnswer(Exception):
    """An effect returned something that is no receipt; in the ledger, also not None: it is rolled back."""


def returned(attempt: int, revision: int, answer: object) -> Answered:
    """An effect outside returned. Anything but a receipt proves nothing."""
    try:
        receipt = checked(answer)
    except WrongAnswer:
        return Answered(attempt, AttemptOutcome.UNCERTAIN, Reason.WRONG_ANSWER.value, revision=revision)
    return Answered(attempt, AttemptOutcome.DONE, Reason.RECEIPT.value, receipt=receipt, revision=revision)


def checked(answer: object) -> Receipt:
    """The receipt; a subclass may have skipped the checks, so a plain one is made of its fields. Raises WrongAnswer."""
    if type(answer) is Receipt:
        return answer
    try:
        if isinstance(answer, Receipt):
            return Receipt(answer.remote_id, answer.version, answer.sink_time)
    except BaseException as error:
        raise WrongAnswer from error
    raise WrongAnswer


def committed(attempt: int, revision: int, receipt: Receipt | None) -> Answered:
    """An effect in the ledger returned; it counts when the transaction commits."""
    return Answered(attempt, AttemptOutcome.DONE, Reason.IN_LEDGER_COMMIT.value, receipt=receipt, revision=revision)


def not_sent(attempt: int, revision: int, reason: Reason) -> Answered:
    """The effect was not called."""
    return Answered(attempt, AttemptOutcome.NOT_SENT, reason.value, revision=revision)


def timed_out(attempt: int, revision: int) -> Answered:
    """The time-out passed without an answer."""
    return Answered(attempt, AttemptOutcome.UNCERTAIN, Reason.TIMEOUT.value, revision=revision)


def raised(errors: Errors, attempt: int, revision: int, error: BaseException) -> Answered:
    """An effect raised: sorted, with its class and its place for whoever looks for the cause."""
    seen = None if isinstance(error, WrongAnswer) else looked_at(error)  # that one is ours, not the effect's
    try:
        outcome, reason, retry_after = meaning(errors, errors.sort(error))
    except BaseException:  # noqa: BLE001 - whatever a user's class does when it is looked at
        reason = Reason.UNCLASSIFIED_EXCEPTION.value
        return Answered(attempt, AttemptOutcome.UNCERTAIN, reason, revision=revision, raised=seen)
    if outcome is AttemptOutcome.UNCERTAIN:
        reason = _doubt(error).value
    return Answered(attempt, outcome, reason, retry_after=retry_after, revision=revision, raised=seen)


def _doubt(error: BaseException) -> Reason:
    if isinstance(error, Uncertain):
        return Reason.UNCERTAIN_ANSWER
    if isinstance(error, WrongAnswer):
        return Reason.WRONG_ANSWER
    if isinstance(error, TimeoutError):
        return Reason.TIMEOUT
    if isinstance(error, ConnectionError):
        return Reason.CONNECTION_LOST
    return Reason.UNCLASSIFIED_EXCEPTION
