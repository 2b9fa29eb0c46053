"""How an HTTP answer to a write is to be taken: applied, or one of the three outcomes. Never looks at an answer's text.

The rule: what is not known to be certain is uncertain. A list may be changed for a system whose promises are known.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from email.utils import parsedate_to_datetime

from counterfoil.core.errors import Outcome, Permanent, Temporary, Uncertain

#: The longest Retry-After that is believed.
LONGEST_ASKED_FOR = timedelta(hours=24)


@dataclass(frozen=True)
class Answers:
    """Status codes that say for certain that nothing was applied; every other code outside 2xx is uncertain.

    5xx, redirects, 408 and 409 (the key is in use, by an attempt that may still land) are therefore uncertain.
    """

    #: status → reason code; list the codes in `Errors(codes=…)`
    permanent: Mapping[int, str] = field(default_factory=lambda: {400: "http_400", 413: "http_413", 422: "http_422"})
    #: later may differ: credentials, a record it depends on, a rate limit
    temporary: frozenset[int] = frozenset({401, 403, 404, 429})

    @property
    def codes(self) -> tuple[str, ...]:
        """The reason codes, for `Errors(codes=…)`."""
        return tuple(sorted(set(self.permanent.values())))

    def outcome(self, status: int, headers: Mapping[str, str]) -> Outcome | None:
        """None for 2xx: applied, if the body can be read too."""
        if 200 <= status < 300:
            return None
        if code := self.permanent.get(status):
            return Permanent(code)
        if status in self.temporary:
            return Temporary(retry_after(headers.get("Retry-After"), headers.get("Date")))
        return Uncertain()


def retry_after(value: str | None, date: str | None = None) -> timedelta | None:
    """Retry-After in either spelling; a date is held against the answer's own Date, not against our clock."""
    if value is None:
        return None
    if value.isascii() and value.isdigit():
        # Sixty digits are a number too; anything long is the longest.
        wait = timedelta(seconds=int(value)) if len(value) <= 6 else LONGEST_ASKED_FOR
    else:
        until, now = _instant(value), _instant(date)
        if until is None or now is None:
            return None
        wait = until - now
    return min(wait, LONGEST_ASKED_FOR) if wait > timedelta(0) else None


def _instant(text: str | None) -> datetime | None:
    if text is None:
        return None
    try:
        read = parsedate_to_datetime(text)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    return read if read.tzinfo is not None else None
