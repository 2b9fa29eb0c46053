"""One mistake that a user may plant in a declaration: what it is, and where it is refused without a type checker.

It is a few lines beside a right declaration, of which it changes some arguments.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType, ModuleType
from typing import Any, NamedTuple

HEAD = """\
from collections.abc import *
from counterfoil import *
from tests.support.mistake_parts import *
"""
RIGHT: Mapping[str, str] = MappingProxyType(
    {
        "name": '"sync_customer"',
        "owner": '"team-crm"',
        "payload": "Customer",
        "contract": "CONTRACT",
        "order": "LatestWins(entity=lambda c: c.id, version=lambda c: c.version)",
        "effect": "Effect(push, CRM, timeout=seconds(20))",
        "proof": "Proof(expected, look_up)",
        "policy": "Policy()",
    }
)


class Refusal(Enum):
    """Where a user without a type checker is told."""

    IMPORT = "DeclarationError while the module is imported"
    CHECK = "a mistake of `counterfoil.testing.check` and of `counterfoil check`"
    ENQUEUE = "Refused by enqueue"
    CALL = "an exception where the function is called: uncertain for an effect, unknown for a probe, a person for a compensation"
    PROVE = "by nothing that does not run it"


class Mistake(NamedTuple):
    """One planted mistake."""

    what: str
    typed: bool  #: a type checker refuses it
    refusal: Refusal
    says: str  #: part of what is said there
    changed: Mapping[str, str] = MappingProxyType({})  #: arguments of the declaration; "" leaves one out
    before: str = ""  #: lines above the declaration
    after: str = ""  #: lines below it
    generic: str = "[Customer]"

    def source(self) -> str:
        """The user's module."""
        arguments = {**RIGHT, **self.changed}
        given = "\n".join(f"    {name}={value}," for name, value in arguments.items() if value)
        declared = f"sync_customer = OperationType{self.generic}(\n{given}\n)\nOPERATIONS = Operations(sync_customer)\n"
        return f"{HEAD}\n{self.before}\n{declared}\n{self.after}\n"


def with_effect(call: str, sink: str = "CRM", more: str = "") -> Mapping[str, str]:
    """The declaration's effect, changed; `more` are further arguments, each after a comma."""
    return {"effect": f"Effect({call}, {sink}, timeout=seconds(20){more})"}


def imported(mistake: Mistake) -> Any:
    """The user's module, as an import makes it."""
    module = ModuleType("user_module")
    sys.modules[module.__name__] = module
    exec(compile(mistake.source(), module.__name__, "exec"), vars(module))
    return module
