"""The half of `counterfoil check` that needs no server: contracts, annotations, shapes and horizons of declared types.

Reads the contracts' files and nothing else; never calls what a user declared.
"""

from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any, NamedTuple

from counterfoil.core.annotations import misfits
from counterfoil.core.errors import Refused
from counterfoil.core.horizons import outlasts
from counterfoil.core.operation_type import Operations, OperationType
from counterfoil.core.records import seconds
from counterfoil.schemas.definition import read_definition
from counterfoil.schemas.fit import fitted

__all__ = ["SEND_GRACE", "Mistake", "check", "of_declarations"]

SEND_GRACE = seconds(5)  # the setting's default


class Mistake(NamedTuple):
    """One thing to correct before a type is used."""

    type: str  #: name of the operation type
    rule: str  #: what is wrong, in words
    remedy: str  #: what to do about it


def check(operations: Operations, send_grace: timedelta = SEND_GRACE) -> Sequence[Mistake]:
    """The half of `counterfoil check` that needs no server; empty where nothing is wrong."""
    return [mistake for of in operations for mistake in (*_of_contract(of), *_of_declaration(of, send_grace))]


def of_declarations(operations: Operations, send_grace: timedelta = SEND_GRACE) -> Sequence[Mistake]:
    """The same without the contracts: no file is read."""
    return [mistake for of in operations for mistake in _of_declaration(of, send_grace)]


def _of_contract(of: OperationType[Any]) -> Iterator[Mistake]:
    try:
        fitted(read_definition(of.contract).shape, of.payload)
    except Refused as refused:
        place = f", at {refused.path}" if refused.path else ""
        yield Mistake(of.name, f"{refused.reason.sentence}{place} ({refused.subject})", refused.reason.advice)


def _of_declaration(of: OperationType[Any], send_grace: timedelta) -> Iterator[Mistake]:
    for misfit in misfits(of):
        yield Mistake(of.name, misfit.rule, misfit.remedy)
    if (rule := outlasts(of, send_grace)) is not None:
        yield Mistake(of.name, rule, "tighten tries, back-off or time-out, or ask the sink for a longer horizon")
