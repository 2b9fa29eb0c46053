"""`counterfoil held list | show | release`: records that no worker could do yet, or that name no operation. Only release, and
show with --raw, are acts.

It must never print a payload but through the mask, except raw bytes for who asks for them by role and reason.
"""

from dataclasses import asdict
from typing import Annotated, Any
from uuid import UUID

import typer
from rich.console import Console
from rich.table import Table

from counterfoil.cli.answer import AsJson, InUtc, ago, answer, moment
from counterfoil.cli.choosing import Reasons, Types, Why, an_instant, bar, chosen, ledger_engine_of, need
from counterfoil.cli.dead_letters import Groups, Limit, Raw, RawWhy
from counterfoil.cli.exits import Exit
from counterfoil.cli.held_view import as_data, as_words, looked_at
from counterfoil.cli.options import an_id, ledger_connection
from counterfoil.cli.record_view import reveal
from counterfoil.cli.shown import cell
from counterfoil.core.acts import Action
from counterfoil.core.reasons import reason_advice, reason_sentence
from counterfoil.core.roles import ACTS, READS
from counterfoil.settings import load_operations, read_settings

app = typer.Typer(no_args_is_help=True)

Since = Annotated[
    Any, typer.Option("--since", parser=an_instant, metavar="TIME", help="Held since: a span ago, like 2h, or an instant.")
]
Until = Annotated[Any, typer.Option("--until", parser=an_instant, metavar="TIME", help="Held before: a span ago, or an instant.")]
Name = Annotated[UUID, typer.Argument(parser=an_id, metavar="ID", help="The cause of a record, or its operation_id.")]
Names = Annotated[
    list[UUID] | None,
    typer.Argument(parser=an_id, metavar="[ID]...", help="Causes of records, or operation_ids."),
]
Before = Annotated[UUID | None, typer.Option(parser=an_id, help="Where the next page begins, as the page before says.")]


@app.command("list")
def list_(  # noqa: PLR0913 - each is one option of the command line
    type_: Types = None,
    reason_code: Reasons = None,
    since: Since = None,
    until: Until = None,
    groups: Groups = False,
    limit: Limit = 50,
    before: Before = None,
    utc: InUtc = False,
    json: AsJson = False,
) -> None:
    """List held records, newest first, with their age; or by reason with --groups."""
    from counterfoil.ledger import held
    from counterfoil.ledger.reading import ledger_now

    wanted = chosen(type_, reason_code, None, (since, until), None)
    with ledger_connection(read_settings()) as connection:
        need(connection, READS["held list"])
        if groups:
            _show_groups(held.groups(connection, wanted), utc=utc, json=json)
            return
        page, now = held.page(connection, wanted, limit=limit, before=before), ledger_now(connection)

    def words(console: Console) -> None:
        table = Table(box=None, padding=(0, 2, 0, 0))
        table.add_column("cause", no_wrap=True, min_width=36)
        for name in ("age", "type", "reason", "record", "operation", "deadline"):
            table.add_column(name, overflow="fold")
        for line in page.lines:
            place = f"{line.topic} [{line.partition}] @ {line.offset}"
            operation = str(line.operation_id or "none: it stays held")
            until = moment(line.due_at, utc=utc) if line.operation_id else ""
            told = (str(line.cause), ago(now - line.at), line.type, line.reason, place, operation, until)
            table.add_row(*map(cell, told))
        console.print(table if page.lines else "no held record fits")
        if page.following is not None:
            console.print(f"more: --before {page.following}")

    lines = [asdict(line) | {"age_seconds": (now - line.at).total_seconds()} for line in page.lines]
    answer({"held": lines, "before": page.following}, words, json=json)


def _show_groups(found: list[Any], *, utc: bool, json: bool) -> None:
    total, unnamed = sum(one.count for one in found), sum(one.without_operation for one in found)

    def words(console: Console) -> None:
        table = Table(box=None, padding=(0, 2, 0, 0))
        for name in ("count", "type", "reason", "without operation", "first seen", "last seen", "what happened", "what to do"):
            table.add_column(name, overflow="fold", justify="right" if name == "count" else "left")
        for one in found:
            seen = (moment(one.first_at, utc=utc), moment(one.last_at, utc=utc))
            words = (reason_sentence(one.reason), reason_advice(one.reason))
            table.add_row(*map(cell, (f"{one.count:,}", one.type, one.reason, str(one.without_operation or ""), *seen, *words)))
        console.print(table if found else "no held record fits")
        if found:
            console.print(f"{total:,} held records, {unnamed:,} of them without an operation")

    told = {"groups": [asdict(one) for one in found], "count": total, "without_operation": unnamed}
    answer(told, words, json=json)


@app.command()
def show(name: Name, raw: Raw = False, reason: RawWhy = None, utc: InUtc = False, json: AsJson = False) -> None:
    """Show one held record: why, since when, until when, what may be done, its payload with tagged fields masked."""
    settings = read_settings()
    if raw and not (reason or "").strip():
        raise typer.BadParameter("raw bytes need a reason", param_hint="--reason")
    operations = load_operations(settings.operations)
    with ledger_connection(settings) as connection:
        need(connection, READS["held show"])
        view = looked_at(connection, settings, operations, name)
        if raw:
            view.raw = reveal(connection, name, (view.line.number, view.line.cause), reason or "")
    answer(as_data(view), lambda console: as_words(view, utc=utc, console=console), json=json)


@app.command()
def release(  # noqa: PLR0913 - each is one option of the command line
    reason: Why,
    ids: Names = None,
    type_: Types = None,
    reason_code: Reasons = None,
    since: Since = None,
    until: Until = None,
    json: AsJson = False,
) -> None:
    """Let held records go: their operations send them again, each once. One without an operation stays held."""
    from counterfoil.core.texts import check_why
    from counterfoil.ledger.names import ledger_of
    from counterfoil.streams.held.releasing import SUBJECT, count
    from counterfoil.streams.held.releasing import release as let_go

    wanted = chosen(type_, reason_code, None, (since, until), None, ids)
    check_why(SUBJECT, reason)
    settings = read_settings()
    with ledger_engine_of(settings) as engine:
        with engine.connect() as connection:
            need(connection, ACTS[Action.RELEASE])
            ledger, total = ledger_of(connection), count(connection, wanted)
        with bar(SUBJECT, total, quiet=json) as progress:
            task = progress.task_ids[0]
            done = let_go(engine, ledger, wanted, reason, settings.review_within, lambda at: progress.update(task, completed=at))

    def words(console: Console) -> None:
        console.print(f"{done.let_go:,} held records let go; their operations are due now")
        if done.incapable:
            console.print(f"  {done.incapable:,} of them no live worker can do: one that meets them again holds them again")
        for code, refused in done.refused.items():
            console.print(cell(f"  refused {refused:,}: {code}: {reason_sentence(code)}. {reason_advice(code)}"))

    answer(done.told(), words, json=json)
    if not done.let_go:
        raise typer.Exit(Exit.REFUSED)
