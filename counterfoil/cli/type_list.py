"""`counterfoil types list`: every operation type with who owns it, what it risks and what is open. It changes nothing."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from counterfoil.cli.answer import AsJson, answer
from counterfoil.cli.counted import ask
from counterfoil.cli.shown import cell
from counterfoil.cli.type_view import HEADS, lines, markdown
from counterfoil.settings import load_operations, read_settings

app = typer.Typer(no_args_is_help=True)

Markdown = Annotated[bool, typer.Option("--markdown", help="Answer with a table in Markdown, to be kept or filed.")]


@app.callback()
def _group() -> None:
    """One group with one command so far: without this, typer would make the command the group itself."""


@app.command("list")
def list_(markdown_: Markdown = False, json: AsJson = False) -> None:
    """List the operation types, riskiest first; without the database too, with counts unknown."""
    if markdown_ and json:
        raise typer.BadParameter("choose --markdown or --json")
    settings = read_settings()
    asked = ask(settings)
    found = lines(load_operations(settings.operations), asked)

    def words(console: Console) -> None:
        if markdown_:
            for line in markdown(found):
                console.print(cell(line))
        else:
            table = Table(box=None, padding=(0, 1, 0, 0))
            for head in HEADS[:-1]:
                table.add_column(head, overflow="fold" if head == "sink" else "ellipsis", no_wrap=head == "type")
            for one in found:
                table.add_row(*map(cell, one.cells()[:-1]))
            console.print(table)
            for one in found:
                if one.declared and one.declared.texts.missing:
                    console.print(cell(f"texts of {one.name}: {one.cells()[-1]}"))
        if asked.trouble:
            console.print()
            console.print(cell(f"counts unknown: {asked.trouble.what} {asked.trouble.advice}"))

    trouble = asked.trouble.as_json()["error"] if asked.trouble else None
    answer({"types": [one.as_data() for one in found], "counts_unknown": trouble}, words, json=json)
