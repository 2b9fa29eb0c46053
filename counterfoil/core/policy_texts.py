"""What a type's owner writes for people: the effect in words, who decides what is true, and what counts as evidence.

For screens and filed pages only: nothing is ever decided by a text.
"""

from __future__ import annotations

from typing import Final

from counterfoil.core import checks
from counterfoil.core.errors import DeclarationError
from counterfoil.core.value import Declared

__all__ = ["Texts"]

LONGEST: Final = 1000  #: characters


class Texts(Declared, kw_only=True):
    """Three texts of 1 to 1,000 characters; None is shown as missing, by `types list`, `policy show` and `check`."""

    effect: str | None = None  #: what can be observed afterwards, in the words of those who are asked about it
    truth: str | None = None  #: which system or person decides what, where two disagree
    evidence: str | None = None  #: what shows that the effect exists, and for how long it can be shown

    def _check(self) -> None:
        for name, text in self.named.items():
            if text is None:
                continue
            checks.instance("Texts", name, text, str, "a text")
            if not text.strip() or len(text) > LONGEST or not all(line.isprintable() for line in text.split("\n")):
                raise DeclarationError("Texts", f"{name} must be 1 to {LONGEST} printable characters")

    @property
    def named(self) -> dict[str, str | None]:
        """The texts by name, in the order of a page."""
        return {"effect": self.effect, "truth": self.truth, "evidence": self.evidence}

    @property
    def missing(self) -> tuple[str, ...]:
        """The names of those that nobody has written."""
        return tuple(name for name, text in self.named.items() if text is None)
