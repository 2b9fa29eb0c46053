"""The Confluent wire frame: a zero, the schema id in four bytes, then the value. Never looks further into the value."""

from counterfoil.core.errors import Undecodable
from counterfoil.core.reasons import Reason

LARGEST_ID = (1 << 31) - 1


def frame(schema_id: int) -> bytes:
    return b"\x00" + schema_id.to_bytes(4, "big")


def framed_id(value: bytes) -> int:
    """The schema id that a value begins with; Undecodable where it begins with no frame."""
    if len(value) < 5 or value[0] != 0:
        raise Undecodable(Reason.UNDECODABLE_FRAME)
    return int.from_bytes(value[1:5], "big")
