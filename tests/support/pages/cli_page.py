"""Prints the reference page of the command line, made from the commands: `python -m tests.support.pages.cli_page`."""

import sys
from collections.abc import Iterator
from typing import Any

import typer

from counterfoil.cli.app import app

HEAD = """\
# The command line

Made from the commands themselves (`make generate`); do not edit by hand.

Every command reads its [settings](settings.md) from variables and one TOML file, ends with one of the
[exit codes](exit-codes.md), and prints one JSON object with `--json`. An error with `--json` is one object too, on standard
output, under `error`. `relay` and `worker` log to standard error, in JSON lines where that is no terminal or `--json` is given.
No command prints a payload, an entity, a password or an exception's text.
"""


def commands(command: Any, name: str = "counterfoil") -> Iterator[tuple[str, Any]]:
    """Every command with its whole name, as it is typed."""
    below: dict[str, Any] = getattr(command, "commands", {})
    if not below:
        yield name, command
    for word, one in below.items():
        yield from commands(one, f"{name} {word}")


def every_command() -> dict[str, Any]:
    """The commands of the program, by their whole names."""
    return dict(commands(typer.main.get_command(app)))


def _usage(name: str, command: Any) -> str:
    arguments = [one.metavar or one.name.upper() for one in command.params if one.param_type_name == "argument"]
    return " ".join([name, *arguments, "[OPTIONS]"])


def _option(one: Any) -> str:
    names = ", ".join(f"`{name}`" for name in one.opts)
    default = one.default
    told = f"`{default}`" if isinstance(default, int) and not isinstance(default, bool) else ""
    told = "required" if one.required else told
    return f"| {names} | {told} | {(one.help or '').replace('|', chr(92) + '|')} |\n"


def _section(name: str, command: Any) -> str:
    options = [one for one in command.params if one.param_type_name == "option" and one.name != "help"]
    rows = "".join(_option(one) for one in options)
    table = f"\n| option | default | meaning |\n| --- | --- | --- |\n{rows}" if rows else ""
    return f"\n## {name}\n\n`{_usage(name, command)}`\n\n{' '.join((command.help or '').split())}\n{table}"


def page() -> str:
    """The page."""
    program = _section("counterfoil", typer.main.get_command(app)).replace("[OPTIONS]", "[OPTIONS] COMMAND")
    return HEAD + program + "".join(_section(name, command) for name, command in every_command().items())


if __name__ == "__main__":
    sys.stdout.write(page())
