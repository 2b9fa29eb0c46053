"""The contracts of the system's own records, which every lock has beside the types' own."""

from functools import lru_cache
from pathlib import Path

from counterfoil.schemas.definition import Definition, read_definition

_FOLDER = Path(__file__).parent / "avro"


@lru_cache(maxsize=1)
def state_definition() -> Definition:
    """The contract of state records."""
    return read_definition(_FOLDER / "state_record.avsc")
