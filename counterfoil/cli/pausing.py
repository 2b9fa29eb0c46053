"""`counterfoil pause` and `resume`: stop a type, or all types of a sink, for a while. Each is an act, in force in seconds.

Nothing is lost or moved by a pause: records wait in Kafka, and attempts that are admitted and not sent cost no try.
"""

from collections.abc import Mapping
from datetime import timedelta
from typing import Annotated, Any, Literal

import typer

from counterfoil.cli.answer import AsJson, answer, moment
from counterfoil.cli.options import ledger_connection, span
from counterfoil.cli.shown import cell
from counterfoil.core.errors import Refused
from counterfoil.core.reasons import Reason as Why
from counterfoil.settings import Settings, load_operations, read_settings

Type = Annotated[str | None, typer.Option("--type", metavar="TYPE", help="The operation type.")]
Sink = Annotated[str | None, typer.Option("--sink", metavar="SINK", help="All types of this sink.")]
Reason = Annotated[str, typer.Option("--reason", help="Why, for whoever reads it later; kept with the act, so no secrets.")]
For = Annotated[
    timedelta | None, typer.Option("--for", parser=span, metavar="SPAN", help='It ends by itself after this, like "2h".')
]

IN_FORCE = "in force on every worker within 5 s"
Kind = Literal["type", "sink"]


def pause(reason: Reason, type_: Type = None, sink: Sink = None, lasting: For = None, json: AsJson = False) -> None:
    """Run no more of a type, or of a sink's types, until it is resumed or the time is over. Records wait in Kafka."""
    from counterfoil.ledger.names import ledger_of
    from counterfoil.ledger.pauses import pause as write

    settings = read_settings()
    kind, name = _target(settings, type_, sink)
    if lasting is not None and lasting <= timedelta(0):
        raise typer.BadParameter("a pause lasts longer than no time", param_hint="--for")
    with ledger_connection(settings) as connection:
        one = write(connection, ledger_of(connection), kind, name, reason, lasting)
    until = f"until {moment(one.until, utc=False)}" if one.until else "until it is resumed"
    told: Mapping[str, Any] = {"kind": kind, "name": name, "paused": True, "at": one.at, "until": one.until, "act": one.act}
    answer(told, lambda console: console.print(cell(f"{kind} {name} is paused {until}; {IN_FORCE}")), json=json)


def resume(reason: Reason, type_: Type = None, sink: Sink = None, json: AsJson = False) -> None:
    """Run a paused type, or a paused sink's types, again. Exit 1 where it is not paused."""
    from counterfoil.ledger.names import ledger_of
    from counterfoil.ledger.pauses import resume as write

    settings = read_settings()
    kind, name = _target(settings, type_, sink, must_exist=False)
    with ledger_connection(settings) as connection:
        act = write(connection, ledger_of(connection), kind, name, reason)
    told = {"kind": kind, "name": name, "paused": False, "act": act}
    answer(told, lambda console: console.print(cell(f"{kind} {name} is resumed; {IN_FORCE}")), json=json)


def _target(settings: Settings, type_: str | None, sink: str | None, *, must_exist: bool = True) -> tuple[Kind, str]:
    """What is meant. A slip of the keyboard must not look like a pause, so it has to be declared; what is paused may be gone."""
    if (type_ is None) == (sink is None):
        raise typer.BadParameter("name one of --type and --sink")
    if type_ is not None:
        if must_exist and load_operations(settings.operations).find(type_) is None:
            raise Refused(Why.UNKNOWN_TYPE, subject=type_[:60])
        return "type", type_
    assert sink is not None
    declared = {one.sink.name for one in load_operations(settings.operations) if one.sink} if must_exist else {sink}
    if sink not in declared:
        raise Refused(Why.UNKNOWN_SINK, subject=sink[:60])
    return "sink", sink
