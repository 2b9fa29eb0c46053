"""`counterfoil sinks list | show | limit`: what goes to which sink, and what holds it back. Only `limit` changes it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from sqlalchemy import Connection

from counterfoil.cli.answer import AsJson, InUtc, ago, answer, moment
from counterfoil.cli.options import ledger_connection
from counterfoil.cli.pausing import Reason
from counterfoil.cli.shown import cell
from counterfoil.cli.sink_view import Line, as_data, lines
from counterfoil.core.errors import DeclarationError, Refused
from counterfoil.core.reasons import Reason as Why
from counterfoil.core.sink import Limits
from counterfoil.settings import Settings, load_operations, read_settings

if TYPE_CHECKING:
    from counterfoil.ledger.pauses import Pause

app = typer.Typer(no_args_is_help=True)

Name = Annotated[str, typer.Argument(metavar="SINK", help="As it is declared.")]
Concurrency = Annotated[int | None, typer.Option(help="Calls in flight, of all workers together; 1 to 10,000.")]
PerSecond = Annotated[float | None, typer.Option(help="Calls a second, of all workers together; none: not limited.")]
AsDeclared = Annotated[bool, typer.Option("--as-declared", help="What the code declares holds again.")]

OUTAGES = 10  #: of one sink that are shown


def _lines(connection: Connection, settings: Settings) -> tuple[list[Line], list[Pause]]:
    from counterfoil.ledger.pauses import pauses
    from counterfoil.ledger.sinks import standings

    held = pauses(connection)
    return lines(load_operations(settings.operations), standings(connection), held), held


@app.command("list")
def list_(utc: InUtc = False, json: AsJson = False) -> None:
    """List the sinks: breaker, calls in flight, limits; and everything that is paused, by whom, why and until when."""
    settings = read_settings()
    with ledger_connection(settings) as connection:
        found, held = _lines(connection, settings)

    def words(console: Console) -> None:
        table = Table(box=None, padding=(0, 2, 0, 0))
        for name in ("sink", "breaker", "in flight", "waiting", "rate", "limits", "types"):
            table.add_column(name, overflow="fold")
        for one in found:
            table.add_row(*map(cell, _row(one)))
        console.print(table if found else "no sink is declared, and no worker has used one")
        _say_paused(console, held, utc=utc)

    answer({"sinks": [one.as_data() for one in found], "paused": [as_data(one) for one in held]}, words, json=json)


def _row(one: Line) -> tuple[str, ...]:
    concurrency, per_second = one.limits
    name = f"{one.name} for {one.type}" if one.type else one.name
    said = "set by hand" if one.set_by_hand else "as declared" if one.declared else "not declared"
    state = "paused" if one.pause else one.breaker.replace("_", " ")
    return (
        name,
        state,
        f"{one.in_flight} of {concurrency or '?'}",
        str(one.waiting),
        _rate(per_second),
        said,
        ", ".join(one.types),
    )


def _rate(per_second: float | None) -> str:
    return "no rate" if per_second is None else f"{per_second:g}/s"


def _say_paused(console: Console, held: Iterable[Pause], *, utc: bool) -> None:
    for one in held:
        until = f"until {moment(one.until, utc=utc)}" if one.until else "until it is resumed"
        since = moment(one.at, utc=utc)
        console.print(cell(f"paused: {one.kind} {one.name} by {one.actor} since {since}, {until}: {one.reason}"))


@app.command()
def show(sink: Name, utc: InUtc = False, json: AsJson = False) -> None:
    """Show one sink: breaker and outages, who shares it, its limits, its pause."""
    from counterfoil.ledger.sinks import outages, sharers

    settings = read_settings()
    with ledger_connection(settings) as connection:
        found, _ = _lines(connection, settings)
        shares, down = sharers(connection, sink), outages(connection, sink, OUTAGES)
    mine = [one for one in found if one.name == sink]
    if not mine:
        raise Refused(Why.UNKNOWN_SINK, subject=sink[:60])

    def words(console: Console) -> None:
        for one in mine:
            _say(console, one, utc=utc)
        for share in shares:
            whose = f" for {share.type}" if share.type else ""
            console.print(
                cell(f"worker {share.worker}{whose}: {share.in_use} in flight of its {share.slots}, would make {share.wanted}")
            )
        for outage in down:
            end = moment(outage.closed_at, utc=utc) if outage.closed_at else "now"
            console.print(cell(f"down: {moment(outage.opened_at, utc=utc)} to {end}"))

    told = {
        "sinks": [one.as_data() for one in mine],
        "workers": [share._asdict() for share in shares],
        "outages": [outage._asdict() for outage in down],
    }
    answer(told, words, json=json)


def _say(console: Console, one: Line, *, utc: bool) -> None:
    name, state, in_flight, waiting, rate, said, types = _row(one)
    rows: list[tuple[str, str]] = [("sink", name), ("types", types), ("state", state)]
    standing = one.standing
    if standing and one.open_since:
        since = f"{moment(one.open_since, utc=utc)} ({ago(standing.now - one.open_since)})"
        rows.append(("down since", f"{since}, after {standing.failures} operations that failed in a row"))
        rows.append(("next probe", moment(standing.until, utc=utc)))
    rows += [("in flight", in_flight), ("waiting", waiting), ("rate", rate), ("limits", said)]
    if one.set_by_hand and one.declared:
        declared = one.declared
        rows.append(("declared", f"{declared.concurrency} in flight, {_rate(declared.per_second)}"))
    grid = Table.grid(padding=(0, 2))
    for label, value in rows:
        grid.add_row(cell(label), cell(value))
    console.print(grid)
    if one.pause:
        _say_paused(console, [one.pause], utc=utc)


@app.command()
def limit(
    sink: Name,
    reason: Reason,
    concurrency: Concurrency = None,
    per_second: PerSecond = None,
    as_declared: AsDeclared = False,
    json: AsJson = False,
) -> None:
    """Set a sink's limits in place of the declared ones, for all workers, within 5 s; or let the declared ones hold again."""
    from counterfoil.ledger.names import ledger_of
    from counterfoil.ledger.pauses import Chosen, set_limits

    if as_declared == (concurrency is not None) or (as_declared and per_second is not None):
        raise typer.BadParameter("name --concurrency, with or without --per-second, or --as-declared")
    settings = read_settings()
    chosen = Chosen(concurrency, per_second)
    if concurrency is not None:
        try:
            Limits(concurrency, per_second)
        except DeclarationError as error:
            raise typer.BadParameter(str(error)) from None
    with ledger_connection(settings) as connection:
        if sink not in {one.name for one in _lines(connection, settings)[0]}:
            raise Refused(Why.UNKNOWN_SINK, subject=sink[:60])
        act = set_limits(connection, ledger_of(connection), sink, chosen, reason)
    told: dict[str, Any] = {"sink": sink, **chosen._asdict(), "act": act}
    what = "as declared" if as_declared else f"{concurrency} in flight, {_rate(per_second)}"
    answer(told, lambda console: console.print(cell(f"sink {sink}: {what}; in force on every worker within 5 s")), json=json)
