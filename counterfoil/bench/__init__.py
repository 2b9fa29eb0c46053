"""`counterfoil bench`: what this machine does, on a real PostgreSQL and a real Kafka, each figure alone and beside a plain loop.

Nothing here decides: a figure is printed, and the exit code is 0. Read `ratio` before `per_s`: machines differ, and so does what
else runs on them.
"""

from collections.abc import Sequence

__all__ = ["run"]


def run(*, as_json: bool = False, only: Sequence[str] = (), operations: int = 40_000) -> int:
    """Measures the parts named in `only` (all, where it is empty), with backlogs of `operations`; answers the exit code."""
    from counterfoil.bench.sitting import sitting

    return sitting(as_json=as_json, only=only, operations=operations)
