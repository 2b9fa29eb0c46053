"""`Value` makes a frozen dataclass of each class below it; `Declared` also checks it when it is built.

Never prints what it must not: fields with payloads and keys are declared with `field(repr=False)`.
"""

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, dataclass_transform

from counterfoil.core.errors import DeclarationError

__all__ = ["Declared", "Value"]


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
class Value:
    """A frozen dataclass by inheritance. Two values with equal fields are equal, unless the class says `eq=False`."""

    def __init_subclass__(cls, *, kw_only: bool = False, eq: bool = True) -> None:
        super().__init_subclass__()
        dataclass(frozen=True, kw_only=kw_only, eq=eq)(cls)


class Declared(Value, eq=False):
    """A value that a user writes in a module: what is wrong with it is a DeclarationError while that module is imported."""

    def __init_subclass__(cls, *, kw_only: bool = False, eq: bool = True) -> None:
        super().__init_subclass__(kw_only=kw_only, eq=eq)
        setattr(cls, "__init__", _explained(cls.__name__, cls.__init__))  # noqa: B010 - mypy refuses the plain assignment

    def __post_init__(self) -> None:
        self._check()

    def _check(self) -> None:
        """Raise DeclarationError for what is wrong; a class below replaces this."""


def _explained(owner: str, build: Callable[..., None]) -> Callable[..., None]:
    """The same `__init__`, with a forgotten or unknown argument as a DeclarationError that names it."""
    signature = inspect.signature(build)

    @functools.wraps(build)
    def checked(self: object, *given: Any, **named: Any) -> None:
        try:
            signature.bind(self, *given, **named)
        except TypeError as mistake:  # Python's own text: argument names, no values
            name = named.get("name")
            raise DeclarationError(name if isinstance(name, str) and name else owner, str(mistake)) from None
        build(self, *given, **named)

    return checked
