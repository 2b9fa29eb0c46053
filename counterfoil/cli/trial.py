"""`counterfoil demo` and `counterfoil bench`: the whole system on parts that it starts itself."""

from typing import Annotated

import typer

from counterfoil.cli.answer import AsJson

Operations = Annotated[int, typer.Option(min=1, max=1_000_000, help="How many operations to enqueue.")]
Database = Annotated[str | None, typer.Option(help="URL of a real PostgreSQL; default: one from the wheel.")]
Brokers = Annotated[str | None, typer.Option(help="Real brokers; default: librdkafka's mock cluster.")]


def demo(operations: Operations = 2000, database: Database = None, brokers: Brokers = None, json: AsJson = False) -> None:
    """Run 2,000 operations against a CRM that misbehaves, kill a worker half way, and count lost and doubled."""
    from counterfoil import demo as part

    raise typer.Exit(part.run(operations=operations, database=database, brokers=brokers, as_json=json))


def bench(
    gate: Annotated[str | None, typer.Argument(help="A bench with a bar, in place of all parts: retries, poison.")] = None,
    json: AsJson = False,
    only: Annotated[str, typer.Option(help="Some parts, with commas between them: enqueue,relay,worker,latency …")] = "",
    operations: Annotated[int, typer.Option(min=1_000, max=1_000_000, help="The size of each backlog.")] = 40_000,
) -> None:
    """Measure enqueue, relay, worker and latency on real parts (up to 10 minutes); with a name, hold one bar: exit 1 under it."""
    from counterfoil import bench as part
    from counterfoil.bench import gates
    from counterfoil.bench.sitting import wanted

    if gate is not None:
        if gate not in gates.GATES:
            raise typer.BadParameter(f"the benches with a bar are {', '.join(gates.GATES)}", param_hint="GATE")
        raise typer.Exit(gates.gate(gate, as_json=json))
    names = [name.strip() for name in only.split(",") if name.strip()]
    try:
        wanted(names)
    except ValueError as error:  # ours: the names of the parts
        raise typer.BadParameter(str(error), param_hint="--only") from None
    raise typer.Exit(part.run(as_json=json, only=names, operations=operations))
