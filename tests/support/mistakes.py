"""Every planted mistake by number: those that a type checker sees, then the others."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from tests.support.mistake import Mistake, Refusal, imported
from tests.support.mistakes_seen import SEEN
from tests.support.mistakes_unseen import UNSEEN

__all__ = ["MISTAKES", "Mistake", "Refusal", "imported"]

MISTAKES: Mapping[int, Mistake] = MappingProxyType(dict(enumerate(SEEN + UNSEEN, start=1)))
