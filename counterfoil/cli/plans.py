"""`counterfoil dlq plan | plans | replay | discard | look-first | stop`: acts on dead letters, one or a million.

A selection is frozen before anything happens to it; every act asks the login's role first and is kept with its reason.
"""

from dataclasses import asdict
from typing import Annotated, Any
from uuid import UUID

import typer
from rich.console import Console
from sqlalchemy import Engine

from counterfoil.cli.answer import AsJson, InUtc, answer, moment
from counterfoil.cli.choosing import (
    Entity,
    Fingerprint,
    Ids,
    Reasons,
    Since,
    Types,
    Until,
    Why,
    bar,
    chosen,
    ledger_engine_of,
    need,
)
from counterfoil.cli.exits import Exit
from counterfoil.cli.options import an_id, ledger_connection
from counterfoil.cli.shown import cell
from counterfoil.core.acts import Action
from counterfoil.core.dead_letters import Chosen
from counterfoil.core.errors import Refused
from counterfoil.core.reasons import Reason, reason_sentence
from counterfoil.core.roles import ACTS, READS, TO_FORCE
from counterfoil.settings import Settings, load_operations, read_settings

Number = Annotated[int, typer.Argument(metavar="PLAN", help="Its number, as `dlq plan` said.")]
Consumer = Annotated[
    str | None, typer.Option("--consumer", help="What runs them now, like shop-worker 2.3: it was updated since they failed.")
]
Force = Annotated[bool, typer.Option("--force", help="Although nothing has changed; needs the role approver.")]
Rate = Annotated[float, typer.Option(min=0.1, max=100_000, help="Operations a second, once the canary is through.")]
StopAfter = Annotated[int, typer.Option(min=1, help="Stop once so many have come back since the run began.")]
Canary = Annotated[bool, typer.Option(help="One, then ten, each with an outcome, before the rest.")]
CanaryWait = Annotated[float, typer.Option(min=0, help="Seconds for the first to have an outcome.")]
Names = Annotated[
    list[UUID] | None, typer.Argument(parser=an_id, metavar="[ID]...", help="Operation ids, or causes of raw records.")
]
OnPlan = Annotated[int | None, typer.Option("--plan", help="Everything in this plan instead of single ids.")]
PREVIEWED = 1_000  #: items of one read


def plan(  # noqa: PLR0913 - each is one option of the command line
    reason: Why,
    type_: Types = None,
    reason_code: Reasons = None,
    fingerprint: Fingerprint = None,
    since: Since = None,
    until: Until = None,
    entity: Entity = None,
    id_: Ids = None,
    consumer: Consumer = None,
    force: Force = False,
    json: AsJson = False,
) -> None:
    """Freeze a selection of dead letters and show what a replay would send and what it would refuse. Sends nothing."""
    from counterfoil.core.decisions import Grounds

    wanted = chosen(type_, reason_code, fingerprint, (since, until), entity, id_)
    grounds = Grounds.FORCED if force else Grounds.CONSUMER if consumer else None
    settings = read_settings()
    with ledger_engine_of(settings) as engine:
        number = _freeze(engine, wanted, reason, grounds, consumer, quiet=json)
        told = _preview(engine, settings, number, quiet=json)
    answer(told, lambda console: _say_preview(told, console), json=json)


def _freeze(engine: Engine, wanted: Chosen, reason: str, grounds: Any, consumer: str | None, *, quiet: bool) -> int:
    """Refused without a filter, and where nothing fits; what was frozen is an act."""
    from counterfoil.core.decisions import Grounds
    from counterfoil.core.texts import check_text, check_why
    from counterfoil.ledger import acts, plans, quarantine
    from counterfoil.ledger.names import ledger_of

    check_why("plan", reason)
    if consumer is not None:
        check_text("plan", "consumer", consumer, 100)
    if wanted.empty:
        raise Refused(Reason.FILTER_EMPTY)
    with engine.connect() as connection:
        need(connection, TO_FORCE if grounds is Grounds.FORCED else ACTS[Action.PLAN])
        count = quarantine.count(connection, wanted)
    if count == 0:
        raise Refused(Reason.NOTHING_SELECTED)
    with bar("freezing", count, quiet=quiet) as progress:
        task = progress.task_ids[0]
        number = plans.freeze(
            engine,
            wanted,
            reason=reason,
            grounds=grounds,
            consumer=consumer,
            tell=lambda so_far: progress.update(task, completed=so_far),
        )
    with engine.begin() as connection:
        one = plans.read(connection, number)
        told = {"filter": wanted.told(), "selected": one.selected, "digest": (one.digest or b"").hex(), "grounds": one.grounds}
        acts.record(connection, ledger_of(connection), Action.PLAN, f"plan {number}", reason, "frozen", detail=told)
    return number


def _preview(engine: Engine, settings: Settings, number: int, *, quiet: bool) -> dict[str, Any]:
    from counterfoil.ledger import plans
    from counterfoil.ledger.names import ledger_of
    from counterfoil.streams.dead_letters.judging import Judge, preview

    with engine.begin() as connection, bar("looking", None, quiet=quiet) as progress:
        one = plans.read(connection, number)
        judge = Judge(ledger_of(connection).name, settings, load_operations(settings.operations))
        task = progress.task_ids[0]
        progress.update(task, total=one.selected)

        def parts() -> Any:
            after = 0
            while items := plans.peek(connection, number, after=after, limit=PREVIEWED):
                yield items
                after = items[-1].position
                progress.update(task, advance=len(items))

        seen = preview(connection, judge, one, parts())
        plans.keep_preview(connection, number, seen)
    return _as_data(one) | {"preview": seen}


def _as_data(one: Any) -> dict[str, Any]:
    return asdict(one) | {"digest": one.digest.hex() if one.digest else None}


def _say_preview(told: dict[str, Any], console: Console) -> None:
    console.print(cell(f"plan {told['id']}: {told['selected']:,} dead letters, frozen; digest {told['digest'][:16]}…", "bold"))
    for one in told["preview"]["send"]:
        where = f"to {one['topic']}" if one["topic"] else "(raw records of waiting operations)"
        console.print(cell(f"  would send {one['count']:,} {one['type'] or ''} {where}"))
        if one["risk"]:
            console.print(cell(f"    doubling: {one['risk']}", "yellow"))
    for code, count in told["preview"]["refused"].items():
        console.print(cell(f"  would refuse {count:,}: {code}: {reason_sentence(code)}"))
    console.print(cell(f"next: counterfoil dlq replay {told['id']} --reason WHY"))


def plans(limit: Annotated[int, typer.Option(min=1, max=1000)] = 20, utc: InUtc = False, json: AsJson = False) -> None:
    """List plans, newest first, with how far each is."""
    from counterfoil.ledger import plans as kept

    with ledger_connection(read_settings()) as connection:
        need(connection, READS["dlq list"])
        found = [(one, kept.progress(connection, one.id)) for one in kept.newest(connection, limit=limit)]

    def words(console: Console) -> None:
        for one, at in found:
            far = f"{at.done:,} done, {at.refused:,} refused, {at.waiting:,} waiting"
            console.print(cell(f"{one.id}  {one.status}  {far}  {moment(one.at, utc=utc)} {one.actor}: {one.reason}"))

    answer({"plans": [_as_data(one) | {"progress": at._asdict()} for one, at in found]}, words, json=json)


def replay(  # noqa: PLR0913 - each is one option of the command line
    number: Number,
    reason: Why,
    rate: Rate = 100.0,
    stop_after: StopAfter = 10,
    canary: Canary = True,
    canary_wait: CanaryWait = 60.0,
    json: AsJson = False,
) -> None:
    """Let a plan's dead letters run again: one, ten, the rest. Run it again to go on; exit 1 where it stopped before its end."""
    from counterfoil.streams.dead_letters.running import Pace

    pace = Pace(rate, stop_after, canary, canary_wait)
    settings = read_settings()
    with ledger_engine_of(settings) as engine:
        _run(engine, settings, number, (Action.REPLAY, reason), pace, json=json)


def discard(reason: Why, ids: Names = None, plan: OnPlan = None, json: AsJson = False) -> None:
    """Give dead letters up for good: operations become not_applicable. Refused where an attempt may have been applied."""
    _at_once(Action.DISCARD, reason, ids, plan, json=json)


def look_first(reason: Why, ids: Names = None, plan: OnPlan = None, json: AsJson = False) -> None:
    """Ask for a probe where an attempt may have been applied: the operation awaits confirmation, and nothing is sent."""
    _at_once(Action.LOOK_FIRST, reason, ids, plan, json=json)


def _at_once(act: Action, reason: str, ids: list[UUID] | None, plan: int | None, *, json: bool) -> None:
    from counterfoil.streams.dead_letters.running import Pace

    if (plan is None) == (not ids):
        raise typer.BadParameter("name ids, or one plan", param_hint="ID or --plan")
    settings = read_settings()
    with ledger_engine_of(settings) as engine:
        with engine.connect() as connection:
            need(connection, ACTS[act])
        number = plan if plan is not None else _freeze(engine, Chosen(ids=tuple(ids or ())), reason, None, None, quiet=True)
        _run(engine, settings, number, (act, reason), Pace(rate=None), json=json)


def _run(engine: Engine, settings: Settings, number: int, what: tuple[Action, str], pace: Any, *, json: bool) -> None:
    """One run, with progress; the exit code says whether the plan is done."""
    from counterfoil.core.decisions import Grounds
    from counterfoil.core.texts import check_why
    from counterfoil.ledger import plans as kept
    from counterfoil.ledger.names import ledger_of
    from counterfoil.reporting import writer_of
    from counterfoil.streams.dead_letters.judging import Judge
    from counterfoil.streams.dead_letters.running import End, Run

    act, reason = what
    check_why(f"plan {number}", reason)
    with engine.connect() as connection:
        need(connection, ACTS[act])
        one, ledger = kept.read(connection, number), ledger_of(connection)
        if one.rests_on is Grounds.FORCED and act is Action.REPLAY:
            need(connection, TO_FORCE)
    judge = Judge(ledger.name, settings, load_operations(settings.operations))
    run = Run(engine, writer_of(ledger), judge, one, act, reason)
    with bar(f"plan {number}", one.selected, quiet=json) as progress:
        task = progress.task_ids[0]
        ended = run.run(pace, lambda at: progress.update(task, completed=at.done + at.refused))
    with engine.connect() as connection:
        refused = kept.refusals(connection, number)
    at = ended.progress
    told = {"plan": number, "end": ended.end.value, "what": ended.end.meaning, "sent": ended.sent, "failed": ended.failed}

    def words(console: Console) -> None:
        console.print(cell(f"plan {number}: {ended.end.meaning}"))
        console.print(f"  this run {ended.sent:,}; in all {at.done:,} done, {at.refused:,} refused, {at.waiting:,} waiting")
        if ended.failed:
            console.print(f"  {ended.failed:,} came back since the run began")
        for code, count in refused.items():
            console.print(cell(f"  refused {count:,}: {code}: {reason_sentence(code)}"))

    answer(told | {"progress": at._asdict(), "refused": refused}, words, json=json)
    nothing = act is not Action.REPLAY and at.refused and not at.done
    if ended.end not in (End.DONE, End.NOTHING_LEFT) or nothing:
        raise typer.Exit(Exit.REFUSED)


def stop(number: Number, reason: Why, json: AsJson = False) -> None:
    """Stop a plan for good: what runs it ends within a step, and what waits in it stays quarantined."""
    from counterfoil.ledger import acts
    from counterfoil.ledger import plans as kept
    from counterfoil.ledger.names import ledger_of

    with ledger_connection(read_settings()) as connection:
        need(connection, ACTS[Action.STOP])
        kept.read(connection, number)
        changed = kept.set_status(connection, number, "stopped", unless=("done",))
        result = "stopped" if changed else "too_late"
        acts.record(connection, ledger_of(connection), Action.STOP, f"plan {number}", reason, result)
    said = "stopped" if changed else "too late: it was done or stopped before"
    answer({"plan": number, "result": result}, lambda console: console.print(f"plan {number}: {said}"), json=json)
    if not changed:
        raise typer.Exit(Exit.REFUSED)
