"""The single checks that declarations are made of: each looks at one value and raises DeclarationError with what is wrong.

Never calls what a user declared, opens nothing, and never puts a value of the user's into a message other than names.
"""

import inspect
import math
import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from counterfoil.core.errors import CODE, DeclarationError

__all__ = [
    "LONGEST",
    "a_duration",
    "a_function",
    "a_name",
    "a_number",
    "a_share",
    "a_whole_number",
    "codes",
    "instance",
    "is_async",
    "label",
    "yes_or_no",
]

NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
SINK_NAME = re.compile(r"[a-z][a-z0-9_-]{0,39}")
LONGEST = timedelta(days=3660)  # longer is a slip of the unit, and would overflow a due time


def label(call: object) -> str:
    """How a function is called in a message."""
    inner = getattr(call, "func", call)  # functools.partial
    return getattr(inner, "__qualname__", type(inner).__name__)


def instance(subject: str, field: str, value: object, kind: type | tuple[type, ...], wanted: str) -> None:
    """`wanted` says in words what belongs there."""
    if not isinstance(value, kind):
        raise DeclarationError(subject, f"{field} must be {wanted}, not {_kind_of(value)}")


def a_name(subject: str, field: str, value: object, *, hyphen: bool = False) -> None:
    """Lower case, at most 40 characters, since it becomes part of topic names and labels."""
    pattern = SINK_NAME if hyphen else NAME
    letters = "lower-case letters, digits, _ and -" if hyphen else "lower-case letters, digits and _"
    if not isinstance(value, str) or not pattern.fullmatch(value):
        raise DeclarationError(subject, f"{field} must be 1 to 40 {letters}, a letter first")


def a_duration(
    subject: str, field: str, value: object, *, above_zero: bool = False, at_most: timedelta = LONGEST, longest: str = "3660 days"
) -> None:
    """A timedelta from zero (or above it) up to `at_most`."""
    instance(subject, field, value, timedelta, "a timedelta, as seconds(20)")
    assert isinstance(value, timedelta)
    if value < timedelta(0) or (above_zero and not value):
        raise DeclarationError(subject, f"{field} must be {'above' if above_zero else 'at least'} zero")
    if value > at_most:
        raise DeclarationError(subject, f"{field} must be at most {longest}")


def a_whole_number(subject: str, field: str, value: object, least: int, most: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise DeclarationError(subject, f"{field} must be a whole number from {least} to {most}")


def a_number(subject: str, field: str, value: object) -> None:
    """Finite and above zero."""
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not math.isfinite(value) or value <= 0:
        raise DeclarationError(subject, f"{field} must be a finite number above zero")


def a_share(subject: str, field: str, value: object) -> None:
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not 0 <= value <= 1:
        raise DeclarationError(subject, f"{field} must be a share from 0 to 1")


def yes_or_no(subject: str, field: str, value: object) -> None:
    instance(subject, field, value, bool, "True or False")


def codes(subject: str, value: object) -> None:
    """Codes of `Permanent`: a closed tuple of words in snake_case, each once."""
    instance(subject, "codes", value, tuple, "a tuple of codes; a single one is written (code,)")
    assert isinstance(value, tuple)
    for code in value:
        if not isinstance(code, str) or not CODE.fullmatch(code):
            raise DeclarationError(subject, "each of codes must be 1 to 63 lower-case letters, digits and _, a letter first")
    if len(set(value)) < len(value):
        raise DeclarationError(subject, "one code twice in codes")


def a_function(subject: str, field: str, value: object, takes: tuple[str, ...], *, may_be_async: bool = False) -> None:
    """Callable with exactly the positional arguments in `takes`; async only where the caller of it can await."""
    if not callable(value) or isinstance(value, type):
        raise DeclarationError(subject, f"{field} must be a function of ({', '.join(takes)})")
    if not may_be_async and is_async(value):
        raise DeclarationError(subject, f"{field} cannot be async: {label(value)}")
    try:
        inspect.signature(value).bind(*takes)
    except TypeError:
        raise DeclarationError(subject, f"{field} must take ({', '.join(takes)}): {label(value)} does not") from None
    except ValueError:
        pass  # written in C without a signature: found at its first call


def is_async(call: Callable[..., Any]) -> bool:
    """Whether calling it gives something to await (a coroutine function, also as a method, a partial or a callable object)."""
    kinds = (inspect.iscoroutinefunction, inspect.isasyncgenfunction)
    inner = getattr(call, "func", call) if not inspect.isroutine(call) else call
    called = getattr(type(inner), "__call__", None)  # noqa: B004 - an object's own, not its instance's
    return any(kind(call) or kind(inner) or (not inspect.isroutine(inner) and kind(called)) for kind in kinds)


def _kind_of(value: object) -> str:
    if isinstance(value, type):
        return f"the class {value.__name__}"
    return "None" if value is None else f"{'an' if type(value).__name__[0] in 'aeiou' else 'a'} {type(value).__name__}"
