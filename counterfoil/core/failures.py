"""How an effect's exceptions are sorted: `Errors`, and the outcome that it gives an exception.

What nobody sorted is uncertain. An exception that proves nothing, a time-out or a lost connection, cannot be sorted otherwise,
and no exception's text is ever read.
"""

import re
from collections.abc import Iterator

from counterfoil.core import checks
from counterfoil.core.errors import DeclarationError, Outcome, Permanent, Temporary, Uncertain
from counterfoil.core.value import Declared

__all__ = ["Errors", "reason_code"]

# Exceptions of much used clients that are time-outs or lost connections without deriving from Python's own: (package, class).
PROVE_NOTHING = frozenset(
    {
        ("aiohttp", "ServerDisconnectedError"),
        ("botocore", "ConnectionClosedError"),
        ("botocore", "ReadTimeoutError"),
        ("http", "IncompleteRead"),
        ("httpx", "NetworkError"),
        ("httpx", "RemoteProtocolError"),
        ("httpx", "TimeoutException"),
        ("requests", "ChunkedEncodingError"),
        ("requests", "ConnectionError"),
        ("requests", "Timeout"),
        ("urllib3", "ProtocolError"),
        ("urllib3", "TimeoutError"),
    }
)


class Errors(Declared):
    """Exceptions by class; the nearest class of an exception counts. Time-outs and lost connections are refused here, and so is a
    class that has one below it (OSError, Exception): they prove nothing. Raise Temporary yourself where nothing was sent."""

    temporary: tuple[type[Exception], ...] = ()
    permanent: tuple[type[Exception], ...] = ()  #: reason code: the class name in snake_case
    codes: tuple[str, ...] = ()  #: of `Permanent`; closed, since they become labels; [a-z][a-z0-9_]{0,62}

    def sort(self, error: BaseException) -> Outcome:
        """The outcome that an exception of the effect means. Never looks at its text."""
        if isinstance(error, Outcome):
            return error
        for kind in type(error).__mro__:
            if kind in self.temporary:
                return Temporary()
            if kind in self.permanent:
                return Permanent(reason_code(kind))
        return Uncertain()

    def knows(self, code: str) -> bool:
        """Whether this is one of the closed codes that may become a reason."""
        return code in self.codes or any(reason_code(kind) == code for kind in self.permanent)

    def _check(self) -> None:
        for field, kinds in (("temporary", self.temporary), ("permanent", self.permanent)):
            checks.instance("Errors", field, kinds, tuple, "a tuple of exceptions; a single one is written (Busy,)")
            for kind in kinds:
                _check_kind(field, kind)
        for kind in self.temporary:
            if kind in self.permanent:
                raise DeclarationError("Errors", f"{kind.__name__} is both temporary and permanent")
        checks.codes("Errors", self.codes)


def reason_code(kind: type) -> str:
    """HTTPError -> http_error, CardDeclined -> card_declined; at most 63 characters."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", kind.__name__)
    return re.sub(r"[^a-z0-9_]", "", words.lower()).strip("_")[:63] or "error"


def _check_kind(field: str, kind: object) -> None:
    if not isinstance(kind, type) or not issubclass(kind, Exception):
        raise DeclarationError("Errors", f"{field} takes classes of exceptions only")
    if issubclass(kind, Outcome):
        raise DeclarationError("Errors", f"{field} cannot be {kind.__name__}: outcomes are raised, not sorted")
    for below in _with_all_below(kind):
        if _proves_nothing(below):
            such = kind.__name__ if below is kind else f"{kind.__name__}, which {below.__name__} is one of"
            raise DeclarationError("Errors", f"{field} cannot be {such}: a time-out or a lost connection proves nothing")


def _proves_nothing(kind: type) -> bool:
    if issubclass(kind, (TimeoutError, ConnectionError)):
        return True
    return any((above.__module__.partition(".")[0], above.__name__) in PROVE_NOTHING for above in kind.__mro__)


def _with_all_below(kind: type) -> Iterator[type]:
    """The class and every class that derives from it, as far as it is imported."""
    waiting = [kind]
    seen = {kind}
    while waiting:
        one = waiting.pop()
        yield one
        derived: list[type] = one.__subclasses__()
        new = [kind for kind in derived if kind not in seen]
        seen.update(new)
        waiting += new
