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


def bench(json: AsJson = False) -> None:
    """Measure enqueue, relay, worker and latency on real parts (up to 10 minutes)."""
    from counterfoil import bench as part

    raise typer.Exit(part.run(as_json=json))
