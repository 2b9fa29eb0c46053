"""What the ledger says of declared types, where it can be asked: counts and sinks, or the trouble that hides them.

It reads only. A ledger that is away, or not made yet, is no error here: what is declared is known without it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from counterfoil.cli.absent_database import explained
from counterfoil.cli.options import ledger_connection
from counterfoil.cli.trouble import Trouble
from counterfoil.core.errors import Refused
from counterfoil.settings import Settings

if TYPE_CHECKING:
    from counterfoil.ledger.pauses import Pause
    from counterfoil.ledger.sinks import Standing
    from counterfoil.ledger.tallying import Unfinished


@dataclass(frozen=True)
class Asked:
    """What was answered."""

    trouble: Trouble | None  #: None: all was read
    unfinished: dict[str, Unfinished] = field(default_factory=dict)  #: by type
    sinks: tuple[Standing, ...] = ()
    pauses: tuple[Pause, ...] = ()

    def counted(self, name: str) -> Unfinished | None:
        """None: not known."""
        from counterfoil.ledger.tallying import Unfinished

        return None if self.trouble else self.unfinished.get(name, Unfinished(0, 0, 0))


def ask(settings: Settings) -> Asked:
    """Ask the ledger in one transaction."""
    from sqlalchemy.exc import SQLAlchemyError

    from counterfoil.ledger.pauses import pauses
    from counterfoil.ledger.sinks import standings
    from counterfoil.ledger.tallying import unfinished

    try:
        with ledger_connection(settings) as connection:
            return Asked(None, unfinished(connection), tuple(standings(connection)), tuple(pauses(connection)))
    except (SQLAlchemyError, Refused) as error:
        return Asked(explained(error, settings.database))
