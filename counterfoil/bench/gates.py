"""The benches that have a bar: `counterfoil bench NAME` prints its figures and leaves with 1 where one is under its bar.

A gate measures as the rest of the bench does, on real parts that it starts itself. Nothing is imported before it is asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Protocol

import orjson
import typer


@dataclass(frozen=True, slots=True)
class Bar:
    """One figure and what it has to be."""

    name: str
    measured: float
    bound: float
    unit: str
    at_least: bool  #: else at most

    @property
    def holds(self) -> bool:
        return self.measured >= self.bound if self.at_least else self.measured <= self.bound


@dataclass(frozen=True, slots=True)
class Gauged:
    """What a gate found: its bars, and what explains them."""

    bars: tuple[Bar, ...]
    detail: Mapping[str, Any]


class Gate(Protocol):
    """A module of a gate."""

    def gauge(self) -> Gauged:
        """Measure."""


#: Name on the command line, and the module that has `gauge()`.
GATES: Mapping[str, str] = {"retries": "counterfoil.bench.retries", "poison": "counterfoil.bench.poison"}


def gate(name: str, *, as_json: bool) -> int:
    """Runs one gate and prints it; 1 where a bar does not hold."""
    module: Gate = import_module(GATES[name])
    found = module.gauge()
    if as_json:
        bars = {
            bar.name: {
                "measured": bar.measured,
                "at_least" if bar.at_least else "at_most": bar.bound,
                "unit": bar.unit,
                "holds": bar.holds,
            }
            for bar in found.bars
        }
        typer.echo(orjson.dumps({"bars": bars, "detail": found.detail}, option=orjson.OPT_INDENT_2).decode())
    else:
        for bar in found.bars:
            bound = f"{'at least' if bar.at_least else 'at most'} {bar.bound:,g} {bar.unit}"
            typer.echo(f"{'holds' if bar.holds else 'FAILS'}  {bar.name}: {bar.measured:,g} {bar.unit} ({bound})")
    return 0 if all(bar.holds for bar in found.bars) else 1
