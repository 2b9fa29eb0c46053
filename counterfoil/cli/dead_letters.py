"""`counterfoil dlq list | show | export | acts`: dead letters read for people. Only export and --raw are acts.

It must never print a payload but through the mask, except raw bytes for who asks for them by role and reason.
"""

import csv
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import IO, Annotated, Any
from uuid import UUID

import orjson
import typer
from rich.console import Console
from rich.table import Table
from sqlalchemy import Connection

from counterfoil.cli.answer import AsJson, InUtc, answer, as_json, moment
from counterfoil.cli.choosing import Entity, Fingerprint, Reasons, Since, Types, Until, Why, chosen, need
from counterfoil.cli.dead_letter_view import as_data, as_words, looked_at
from counterfoil.cli.options import an_id, ledger_connection
from counterfoil.cli.record_view import reveal
from counterfoil.cli.shown import cell
from counterfoil.core.acts import Action
from counterfoil.core.reasons import reason_sentence
from counterfoil.core.roles import ACTS, READS
from counterfoil.settings import load_operations, read_settings

Limit = Annotated[int, typer.Option(min=1, max=1000, help="Lines of one page.")]
Before = Annotated[int | None, typer.Option(help="Where the next page begins, as the page before says.")]
Groups = Annotated[bool, typer.Option("--groups", help="By cause: how many, first and last seen, last replayed.")]
Name = Annotated[UUID, typer.Argument(parser=an_id, metavar="ID", help="An operation_id, or the cause of a raw record.")]
Raw = Annotated[bool, typer.Option("--raw", help="Also the untouched bytes, in hexadecimal: an act, which needs --reason.")]
RawWhy = Annotated[str | None, typer.Option("--reason", help="Why the raw bytes are looked at; kept with the act.")]
Output = Annotated[Path | None, typer.Option("--output", metavar="FILE", help="Default: standard output.")]

EXPORTED = 500  #: lines of one read


def list_(  # noqa: PLR0913 - each is one option of the command line
    type_: Types = None,
    reason_code: Reasons = None,
    fingerprint: Fingerprint = None,
    since: Since = None,
    until: Until = None,
    entity: Entity = None,
    groups: Groups = False,
    limit: Limit = 50,
    before: Before = None,
    utc: InUtc = False,
    json: AsJson = False,
) -> None:
    """List dead letters, newest first, or by cause with --groups."""
    from counterfoil.ledger import quarantine

    wanted = chosen(type_, reason_code, fingerprint, (since, until), entity)
    with ledger_connection(read_settings()) as connection:
        need(connection, READS["dlq list"])
        if groups:
            _show_groups(quarantine.groups(connection, wanted), utc=utc, json=json)
            return
        page = quarantine.page(connection, wanted, limit=limit, before=before)

    def words(console: Console) -> None:
        table = Table(box=None, padding=(0, 2, 0, 0))
        table.add_column("id", no_wrap=True, min_width=36)
        for name in ("type", "reason", "fingerprint", "replays", "quarantined"):
            table.add_column(name, overflow="fold")
        for line in page.lines:
            told = (str(line.name), line.type, line.reason, line.fingerprint, str(line.replays or ""), moment(line.at, utc=utc))
            table.add_row(*map(cell, told))
        console.print(table if page.lines else "no dead letter fits")
        if page.following is not None:
            console.print(f"more: --before {page.following}")

    answer({"dead_letters": [asdict(line) for line in page.lines], "before": page.following}, words, json=json)


def _show_groups(found: list[Any], *, utc: bool, json: bool) -> None:
    def words(console: Console) -> None:
        table = Table(box=None, padding=(0, 2, 0, 0))
        for name in ("count", "type", "reason", "fingerprint", "first seen", "last seen", "last replayed", "what happened"):
            table.add_column(name, overflow="fold", justify="right" if name == "count" else "left")
        for one in found:
            seen = (moment(one.first_at, utc=utc), moment(one.last_at, utc=utc), moment(one.replayed_at, utc=utc))
            told = (f"{one.count:,}", one.type, one.reason, one.fingerprint, *seen, reason_sentence(one.reason))
            table.add_row(*map(cell, told))
        console.print(table if found else "no dead letter fits")
        if found:
            console.print(f"{sum(one.count for one in found):,} dead letters, {len(found)} causes")

    total = sum(one.count for one in found)
    answer({"groups": [asdict(one) for one in found], "count": total}, words, json=json)


def show(name: Name, raw: Raw = False, reason: RawWhy = None, utc: InUtc = False, json: AsJson = False) -> None:
    """Show one dead letter: its cause, what may be done and what not, its payload with tagged fields masked, its revisions."""
    settings = read_settings()
    if raw and not (reason or "").strip():
        raise typer.BadParameter("raw bytes need a reason", param_hint="--reason")
    operations = load_operations(settings.operations)
    with ledger_connection(settings) as connection:
        need(connection, READS["dlq show"])
        view = looked_at(connection, settings, operations, name)
        if raw:
            view.raw = reveal(connection, name, (view.line.number, view.line.raw), reason or "")
    answer(as_data(view), lambda console: as_words(view, utc=utc, console=console), json=json)


class Form(StrEnum):
    """How lines are exported."""

    JSONL = "jsonl"
    CSV = "csv"


def export(  # noqa: PLR0913 - each is one option of the command line
    reason: Why,
    type_: Types = None,
    reason_code: Reasons = None,
    fingerprint: Fingerprint = None,
    since: Since = None,
    until: Until = None,
    entity: Entity = None,
    form: Annotated[Form, typer.Option("--format", help="One JSON object a line, or CSV.")] = Form.JSONL,
    output: Output = None,
    json: AsJson = False,
) -> None:
    """Write dead letters with their masked payloads to a file, a batch at a time: an act, whatever becomes of the file."""
    from counterfoil.ledger import acts, quarantine
    from counterfoil.ledger.names import ledger_of

    if json and output is None:
        raise typer.BadParameter("with --json the answer is on standard output: name a file", param_hint="--output")
    wanted = chosen(type_, reason_code, fingerprint, (since, until), entity)
    settings = read_settings()
    operations = load_operations(settings.operations)
    with ledger_connection(settings) as connection:
        need(connection, ACTS[Action.EXPORT])
        count = quarantine.count(connection, wanted)
        told = {"filter": wanted.told(), "count": count, "format": form.value}
        acts.record(connection, ledger_of(connection), Action.EXPORT, "dead letters", reason, "begun", detail=told)
    with ledger_connection(settings) as connection, _opened(output) as file:
        written = _write(file, form, _exported(connection, settings, operations, wanted))
    answer(
        {"written": written, "file": str(output) if output else None},
        lambda console: Console(stderr=True).print(f"{written} dead letters written"),
        json=json,
    )


@contextmanager
def _opened(output: Path | None) -> Iterator[IO[str]]:
    if output is None:
        yield sys.stdout
        return
    with output.open("w", encoding="utf-8", newline="") as file:
        yield file


def _exported(connection: Connection, settings: Any, operations: Any, wanted: Any) -> Iterator[dict[str, Any]]:
    from counterfoil.ledger import plans, quarantine
    from counterfoil.schemas.contracts import Contracts
    from counterfoil.streams.dead_letters.showing import masked

    contracts, before = Contracts(operations, settings.registry_lock), None
    while True:
        page = quarantine.page(connection, wanted, limit=EXPORTED, before=before)
        numbers = [line.number for line in page.lines if line.number is not None]
        values = plans.current_values(connection, numbers)
        for line in page.lines:
            told = asdict(line) | {"sentence": reason_sentence(line.reason)}
            shown = masked(contracts, line.type, values.get(line.number)) if line.number is not None else None
            told["payload"] = shown.fields if shown else None
            told["payload_withheld"] = shown.why_not if shown else "raw"
            yield told
        if page.following is None:
            return
        before = page.following


def _write(file: IO[str], form: Form, lines: Iterator[dict[str, Any]]) -> int:
    written, table = 0, None
    for told in lines:
        if form is Form.JSONL:
            file.write(orjson.dumps(orjson.loads(as_json(told)), option=orjson.OPT_APPEND_NEWLINE).decode())
        else:
            flat = orjson.loads(as_json(told))
            flat["payload"] = orjson.dumps(flat["payload"]).decode() if flat["payload"] is not None else None
            if table is None:
                table = csv.DictWriter(file, list(flat))
                table.writeheader()
            table.writerow({key: _safe(value) for key, value in flat.items()})
        written += 1
    return written


def _safe(value: Any) -> Any:
    """A spreadsheet takes a cell that begins like a formula for one."""
    return f"'{value}" if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t") else value


def acts(
    operation: Annotated[UUID | None, typer.Option("--id", parser=an_id, metavar="ID", help="Only about this operation.")] = None,
    verify: Annotated[bool, typer.Option("--verify", help="Walk the whole chain of acts; exit 1 where it is broken.")] = False,
    limit: Limit = 50,
    before: Before = None,
    utc: InUtc = False,
    json: AsJson = False,
) -> None:
    """List what people did, newest first: who, when, what, why, with which result."""
    from counterfoil.ledger import acts as kept
    from counterfoil.ledger.standing import number_of

    with ledger_connection(read_settings()) as connection:
        need(connection, READS["dlq acts"])
        if verify:
            _say_verified(kept.verify(connection), json=json)
            return
        number = number_of(connection, operation) if operation is not None else None
        found = kept.read(connection, number=number, before=before, limit=limit)

    def words(console: Console) -> None:
        table = Table(box=None, padding=(0, 2, 0, 0))
        for title in ("id", "when", "who", "act", "about", "result", "why"):
            table.add_column(title, overflow="fold")
        for one in found:
            told = (str(one.id), moment(one.at, utc=utc), one.actor, one.action, one.subject, one.result, one.reason)
            table.add_row(*map(cell, told))
        console.print(table if found else "no act")

    answer({"acts": [one._asdict() for one in found]}, words, json=json)


def _say_verified(verified: Any, *, json: bool) -> None:
    whole = verified.broken is None
    said = f"{verified.acts} acts, the chain is whole" if whole else f"act {verified.broken} does not follow from those before it"
    answer({"ok": whole, "acts": verified.acts, "broken": verified.broken}, lambda console: console.print(said), json=json)
    raise typer.Exit(0 if whole else 1)
