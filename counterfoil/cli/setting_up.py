"""`counterfoil init`, `check` and `exits`: making a ledger, and looking whether everything that it needs is there.

`init` can be repeated and never takes anything away; `check` only reads.
"""

from dataclasses import asdict
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from counterfoil.cli.answer import AsJson, answer
from counterfoil.cli.exits import Exit
from counterfoil.cli.finding import Mark, exit_of
from counterfoil.cli.shown import cell, shown
from counterfoil.settings import load_operations, read_settings

Renew = Annotated[bool, typer.Option("--renew", help="Give contracts that changed a new version and id in registry.lock.")]

BY_HAND = (
    "This login may not make database roles: until they are there, the owner of the schema alone may act. Have somebody run, "
    "leaving out roles that are there:"
)
COLOURS = {Mark.OK: "green", Mark.NOTE: "yellow", Mark.WRONG: "red", Mark.UNREACHABLE: "red", Mark.SKIPPED: "dim"}


def init(renew: Renew = False, json: AsJson = False) -> None:
    """Make or migrate the ledger in the database, write its name, and lock the contracts' ids. Safe to repeat."""
    from counterfoil.ledger.migrate import initialise, newest
    from counterfoil.ledger.roles import ensure
    from counterfoil.schemas.lock import ensure_lock, read_lock
    from counterfoil.schemas.system import state_definition

    settings = read_settings()
    operations = load_operations(settings.operations)
    lock = ensure_lock(operations, settings.registry_lock, renew=renew)[0]
    state_schema = read_lock(lock).entry(state_definition()).id
    initialise(settings.database, ledger=settings.ledger, state_schema=state_schema)
    made = ensure(settings.database, settings.ledger)
    told: dict[str, Any] = {"ledger": settings.ledger, "migration": newest(), "lock": str(lock)}
    told |= {"roles": made.roles, "by_hand": made.by_hand}

    def words(console: Console) -> None:
        console.print(cell(f"ledger {settings.ledger} is ready, at migration {told['migration']}"))
        console.print(cell(f"contracts are locked in {lock}"))
        if made.roles:
            console.print(cell(f"database roles: {', '.join(made.roles)}"))
        else:
            console.print(cell(BY_HAND, "yellow"))
            for statement in made.by_hand:
                console.print(cell(f"  {statement}"))
        console.print("next: `counterfoil topics apply`, then `counterfoil check`")

    answer(told, words, json=json)


def check(json: AsJson = False) -> None:
    """Look at settings, database, migrations, topics and types: one line each, with what to do. Exit 0, 1 or 3."""
    from counterfoil.cli.checks import look

    findings = list(look())
    end = exit_of(findings)

    def words(console: Console) -> None:
        for finding in findings:
            mark = (f"{finding.mark.value:<12}", COLOURS[finding.mark])
            todo = f" → {finding.todo}" if finding.todo else ""
            console.print(Text.assemble(mark, (shown(finding.name), "bold"), shown(f": {finding.what}{todo}")))

    answer({"ok": end is Exit.OK, "findings": [asdict(finding) for finding in findings]}, words, json=json)
    raise typer.Exit(int(end))


def exits(json: AsJson = False) -> None:
    """Explain the exit codes."""
    told = [{"code": int(one), "name": one.name.lower(), "meaning": one.meaning} for one in Exit]

    def words(console: Console) -> None:
        for one in Exit:
            console.print(cell(f"{one.value}  {one.name.lower():12} {one.meaning}"))

    answer({"exits": told}, words, json=json)
