"""Where every process of a crash cell begins: `python -m tests.crash.child [--without GUARD] [--lose REPORT] COMMAND …`.

A guard is taken out, and a report lost, by replacing functions before the command starts. Nothing of that is in the production
code, and nothing but this entry can do it.
"""

from __future__ import annotations

import sys
from pathlib import Path


def main(arguments: list[str]) -> None:
    """Take out what is asked for, then be `counterfoil COMMAND`, or a caller."""
    while arguments[0] in ("--without", "--lose"):
        option, name = arguments.pop(0), arguments.pop(0)
        from tests.crash import guards

        guards.take_out(name) if option == "--without" else guards.lose(name)
    if arguments[0] == "caller":
        return _call(Path(arguments[1]), int(arguments[2]), arguments[3])
    from counterfoil.cli import main as command

    sys.argv = ["counterfoil", *arguments]
    return command()


def _call(history: Path, first: int, secret: str) -> None:
    from counterfoil.ledger.engine import ledger_engine
    from counterfoil.settings import read_settings
    from tests.crash.callers import Caller, History

    settings = read_settings()
    engine = ledger_engine(settings.database, pool_size=1)
    Caller(engine, settings.ledger, History(history), secret).call(first)
    engine.dispose()


if __name__ == "__main__":
    main(sys.argv[1:])
