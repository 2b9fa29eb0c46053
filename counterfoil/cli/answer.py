"""How commands answer: one JSON object on standard output, or words for people; troubles go to standard error.

Times are absolute with their zone; JSON has them in UTC. It must never be handed a payload: it prints what it gets.
"""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

import orjson
import typer
from rich.console import Console
from rich.text import Text

from counterfoil.cli.shown import cell, shown, shown_json
from counterfoil.cli.trouble import Trouble

AsJson = Annotated[bool, typer.Option("--json", help="Answer with one JSON object.")]
InUtc = Annotated[bool, typer.Option("--utc", help="Show times in UTC instead of local time.")]

JSON_OPTIONS = orjson.OPT_INDENT_2 | orjson.OPT_UTC_Z | orjson.OPT_APPEND_NEWLINE | orjson.OPT_NON_STR_KEYS


def _other(value: object) -> object:
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, (set, frozenset)):
        return sorted(value)
    raise TypeError


def _sayable(value: Any) -> Any:
    """However deep: instants in UTC (a session's time zone is an accident), lone surrogates escaped (JSON cannot carry them)."""
    match value:
        case str():
            return value.encode("utf-8", "backslashreplace").decode()
        case datetime():
            return value.astimezone(UTC)
        case dict():
            return {name: _sayable(one) for name, one in value.items()}
        case list() | tuple():
            return [_sayable(one) for one in value]
    return value


def as_json(value: object) -> str:
    """One JSON object, indented, instants in UTC; what a terminal would obey is escaped."""
    return shown_json(orjson.dumps(_sayable(value), default=_other, option=JSON_OPTIONS).decode())


def answer(data: object, words: Callable[[Console], None], *, json: bool) -> None:
    """Print the answer of a command, in one of its two forms."""
    if json:
        typer.echo(as_json(data), nl=False)
    else:
        words(Console(highlight=False, soft_wrap=True))


def complain(trouble: Trouble, *, json: bool) -> None:
    """Say what went wrong: JSON where the answer was expected, words on standard error."""
    if json:
        typer.echo(as_json(trouble.as_json()), nl=False)
        return
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    subject = f"{trouble.subject}: " if trouble.subject else ""
    console.print(Text.assemble(("counterfoil: ", "bold red"), shown(subject + trouble.what)))
    console.print(cell(f"  what to do: {trouble.advice}"))


def moment(at: datetime | None, *, utc: bool) -> str:
    """An instant with its zone, to the millisecond; "" where there is none."""
    if at is None:
        return ""
    shown = at.astimezone(UTC) if utc else at.astimezone()
    return shown.isoformat(sep=" ", timespec="milliseconds")


def ago(span: timedelta) -> str:
    """A span in its largest unit: "3m", "2h", "5d"; what lies ahead is "in 3m"."""
    seconds = span.total_seconds()
    size = abs(seconds)
    for unit, name in ((86400, "d"), (3600, "h"), (60, "m")):
        if size >= unit:
            return f"{'in ' if seconds < 0 else ''}{int(size // unit)}{name}"
    return f"{'in ' if seconds < 0 else ''}{int(size)}s"
