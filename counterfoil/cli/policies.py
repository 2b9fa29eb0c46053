"""`counterfoil policy show TYPE`: the page that a team files about one operation type. It changes nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any

import typer
from rich.console import Console

from counterfoil.cli import policy_facts
from counterfoil.cli.answer import AsJson, answer
from counterfoil.cli.counted import Asked, ask
from counterfoil.cli.policy_facts import Facts
from counterfoil.cli.shown import cell
from counterfoil.cli.sink_view import lines as sink_lines
from counterfoil.core.errors import Refused
from counterfoil.core.operation_type import Operations, OperationType
from counterfoil.core.reasons import Reason
from counterfoil.settings import Settings, load_operations, read_settings

app = typer.Typer(no_args_is_help=True)

Name = Annotated[str, typer.Argument(metavar="TYPE", help="As it is declared.")]


@dataclass(frozen=True)
class Section:
    """One heading of the page."""

    name: str
    facts: Facts
    text: str | None = None  #: what the type's owner wrote
    written: str | None = None  #: which of `texts` belongs here; None: none does


@app.callback()
def _group() -> None:
    """One group with one command so far: without this, typer would make the command the group itself."""


@app.command()
def show(type_: Name, json: AsJson = False) -> None:
    """Show what is expected of one type, who decides what, and every wait and remedy, as a page in Markdown."""
    settings = read_settings()
    operations = load_operations(settings.operations)
    of = operations.find(type_)
    if of is None:
        raise Refused(Reason.UNKNOWN_TYPE, subject=type_[:60])
    asked = ask(settings)
    page = sections(of, settings, now(of, operations, asked))

    def words(console: Console) -> None:
        for line in _markdown(of, page):
            console.print(cell(line))

    answer(_as_data(of, page, asked), words, json=json)


def sections(of: OperationType[Any], settings: Settings, now: Facts) -> list[Section]:
    """The page, in its order; `now` is what the ledger says today."""
    texts = of.texts
    return [
        Section("Expected effect", policy_facts.effect(of), texts.effect, "effect"),
        Section("Who decides what", policy_facts.decides(of, settings), texts.truth, "truth"),
        Section("Evidence", policy_facts.evidence(of), texts.evidence, "evidence"),
        Section("Windows", policy_facts.windows(of, settings)),
        Section("Order", policy_facts.order(of)),
        Section("Retry", policy_facts.retry(of)),
        Section("Remedies", policy_facts.remedies(of)),
        Section("In force now", now),
    ]


def now(of: OperationType[Any], operations: Operations, asked: Asked) -> Facts:
    """What the ledger adds to the declaration: limits that a person set, pauses, what is open."""
    counted = asked.counted(of.name)
    if asked.trouble or counted is None:
        return [
            (
                "the ledger",
                f"was not reached, so limits, pauses and counts are unknown: {asked.trouble.what if asked.trouble else ''}",
            )
        ]
    facts = [("open", str(counted.open)), ("in review", str(counted.in_review)), ("quarantined", str(counted.quarantined))]
    for line in sink_lines(operations, asked.sinks, asked.pauses):
        if of.sink is not None and line.name == of.sink.name and line.type in ("", of.name):
            concurrency, per_second = line.limits
            rate = "no rate" if per_second is None else f"{per_second:g} calls a second"
            by = "set by hand" if line.set_by_hand else "as declared"
            facts.append(
                (f"limits of {line.name}{' for this type' if line.type else ''}", f"{concurrency} in flight, {rate}, {by}")
            )
    held = {("type", of.name), ("sink", of.sink.name if of.sink else "")}
    facts += [
        ("paused", f"{one.kind} {one.name}, by {one.actor}: {one.reason}") for one in asked.pauses if (one.kind, one.name) in held
    ]
    return facts


def _markdown(of: OperationType[Any], page: list[Section]) -> Iterator[str]:
    yield f"# {of.name}"
    for section in page:
        yield ""
        yield f"## {section.name}"
        yield ""
        if section.written:
            yield from (section.text or f"**Missing**: nobody has written `Texts({section.written}=…)`.").split("\n")
            yield ""
        yield from (f"- {name}: {fact}" for name, fact in section.facts)


def _as_data(of: OperationType[Any], page: list[Section], asked: Asked) -> dict[str, Any]:
    return {
        "type": of.name,
        "owner": of.owner,
        "texts": of.texts.named,
        "texts_missing": of.texts.missing,
        "sections": [{"name": one.name, "facts": dict(one.facts)} for one in page],
        "ledger_unknown": asked.trouble.as_json()["error"] if asked.trouble else None,
    }
