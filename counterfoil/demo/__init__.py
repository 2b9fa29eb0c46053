"""`counterfoil demo`: the whole system against a CRM that misbehaves, with a worker killed half way, and an honest count.

Everything that it starts is real and ends with it; it never touches a database or a broker that it was not given.
"""


def run(*, operations: int = 2000, database: str | None = None, brokers: str | None = None, as_json: bool = False) -> int:
    """The exit code: 0 only where nothing was lost, nothing doubled and everything came to rest."""
    from counterfoil.demo.play import Scene, play

    return play(Scene(operations=operations, database=database, brokers=brokers, as_json=as_json))
