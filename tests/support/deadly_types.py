"""A type whose payload's class kills the process that decodes certain records, really; beside the ordinary types."""

from __future__ import annotations

import os
import signal
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path

from counterfoil import InLedgerBatch, Operations
from examples.upsert_projection import Stock
from tests.support import worked

MODULE = "tests.support.deadly_types:OPERATIONS"
VICTIMS = "DEADLY_VICTIMS"  #: variable: the file that each kill is written to; without it nothing is killed


@dataclass(frozen=True)
class Deadly(Stock):
    """Stock; an article whose name begins with "kills" ends the process with SIGKILL."""

    def __post_init__(self) -> None:
        victims = os.environ.get(VICTIMS)
        if victims and self.sku.startswith("kills"):
            with Path(victims).open("a") as file:
                file.write(f"{self.sku}\n")
            os.kill(os.getpid(), signal.SIGKILL)


def kills(victims: Path) -> Counter[str]:
    """How many processes each article has killed."""
    return Counter(victims.read_text().split()) if victims.exists() else Counter()


#: Three kills may cost an operation that ran meanwhile three tries (S22): it has one more.
_PATIENT = InLedgerBatch(worked.log_many, size=100, errors=worked.ERRORS, retry=replace(worked.SOON, max_tries=4))
deadly = replace(worked.in_batches, payload=Deadly, effect=_PATIENT)
OPERATIONS = Operations(deadly, worked.one_by_one, worked.push, worked.push_async)
