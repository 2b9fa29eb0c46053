"""What `check` looks at in what holds work back: pauses, open breakers, limits that are not the declared ones.

It reads only. None of it is wrong: somebody should know.
"""

from collections.abc import Iterator

from sqlalchemy.exc import SQLAlchemyError

from counterfoil.cli.answer import ago, moment
from counterfoil.cli.finding import Finding, Mark
from counterfoil.cli.options import ledger_connection
from counterfoil.core.operation_type import Operations
from counterfoil.settings import Settings


def look(settings: Settings, operations: Operations) -> Iterator[Finding]:
    """Every finding."""
    from counterfoil.cli.sink_view import lines
    from counterfoil.ledger.pauses import pauses
    from counterfoil.ledger.reading import ledger_now
    from counterfoil.ledger.sinks import standings

    try:
        with ledger_connection(settings) as connection:
            held, now = pauses(connection), ledger_now(connection)
            found = lines(operations, standings(connection), held)
    except SQLAlchemyError:
        return  # lost since it was looked at
    for one in held:
        until = f"until {moment(one.until, utc=True)}" if one.until else "until it is resumed"
        what = f"paused by {one.actor} {ago(now - one.at)} ago, {until}: {one.reason}"
        todo = f"When the reason is gone: `counterfoil resume --{one.kind} {one.name} --reason …`."
        yield Finding(f"{one.kind} {one.name}", Mark.NOTE, what, todo)
    for line in found:
        if line.open_since is not None:
            since = ago(now - line.open_since)
            what = f"its breaker is {line.breaker.replace('_', ' ')}: down for {since}, nothing is sent but a probe"
            yield Finding(
                f"sink {line.name}", Mark.NOTE, what, f"Look at the sink; `counterfoil sinks show {line.name}` says more."
            )
        if line.set_by_hand and line.declared and line.limits != (line.declared.concurrency, line.declared.per_second):
            yield Finding(
                f"limits of {line.name}",
                Mark.NOTE,
                f"set by hand to {_said(*line.limits)}, declared {_said(line.declared.concurrency, line.declared.per_second)}",
                f"Write them into the code too, or run `counterfoil sinks limit {line.name} --as-declared --reason …`.",
            )


def _said(concurrency: int | None, per_second: float | None) -> str:
    return f"{concurrency} in flight, {'no rate' if per_second is None else f'{per_second:g}/s'}"
