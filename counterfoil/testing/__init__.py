"""For users' own tests: what can be known about declared operation types without a server, and rehearsals on a real ledger.

`check` never runs an effect or a probe. `rehearse` runs effects, against whatever their clients talk to: it needs PostgreSQL and
no broker.
"""

from counterfoil.testing.effects import assert_effect_once
from counterfoil.testing.faults import Fault
from counterfoil.testing.mistakes import Mistake, check
from counterfoil.testing.rehearsal import Rehearsal, rehearse

__all__ = ["Fault", "Mistake", "Rehearsal", "assert_effect_once", "check", "rehearse"]
