"""A text that somebody hands in, as every part can carry it and a terminal can show it. It must never repeat the text."""

from unicodedata import category

from counterfoil.core.errors import Refused
from counterfoil.core.reasons import Reason

LONGEST_WHY = 500  #: characters


def check_text(subject: str, path: str, text: str, longest: int) -> None:
    """Refuses what PostgreSQL or a header cannot carry, and control characters, which terminals obey. `longest` in characters."""
    if not isinstance(text, str):
        raise Refused(Reason.WRONG_TYPE, path=path, subject=subject)
    if len(text) > longest:
        raise Refused(Reason.TEXT_TOO_LONG, path=path, subject=subject)
    if any(category(letter) in ("Cc", "Cs") for letter in text):
        raise Refused(Reason.FORBIDDEN_TEXT, path=path, subject=subject)


def check_why(subject: str, reason: str) -> None:
    """A person's or a caller's reason: 1 to 500 characters that are more than blanks."""
    check_text(subject, "reason", reason, LONGEST_WHY)
    if not reason.strip():
        raise Refused(Reason.REASON_MISSING, subject=subject)
