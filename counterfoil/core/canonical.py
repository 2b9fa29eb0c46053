"""Canonical form 1: the one spelling of a value that identities and content digests are taken over.

Each value is a tag, a length and a body (`s3:abc`), so no two different values share a spelling and absent is not null. A
composite says how many members follow; fields and map entries come in the order of their names. A change here changes every
operation_id and digest: it needs a new form number beside this one, never an edit.
"""

import struct
from unicodedata import normalize
from uuid import UUID

FORM = 1  #: number of this form; carried by every digest

NULL = b"n0:"
TRUE = b"b1:1"
FALSE = b"b1:0"

_double = struct.Struct(">d").pack


def of_text(value: str) -> bytes:
    """Text in NFC as UTF-8: é as one or two code points is one value. UnicodeEncodeError on a lone surrogate."""
    raw = value.encode() if value.isascii() else normalize("NFC", value).encode()
    return b"s%d:%b" % (len(raw), raw)


def of_symbol(value: str) -> bytes:
    raw = value.encode()
    return b"e%d:%b" % (len(raw), raw)


def of_integer(value: int) -> bytes:
    raw = b"%d" % value
    return b"i%d:%b" % (len(raw), raw)


def of_decimal(unscaled: int) -> bytes:
    """A decimal as its unscaled integer at the contract's scale: 1, 1.0 and 1.00 are one value."""
    raw = b"%d" % unscaled
    return b"d%d:%b" % (len(raw), raw)


def of_instant(microseconds: int) -> bytes:
    """Microseconds since 1970-01-01 UTC, whatever zone the value was written in."""
    raw = b"%d" % microseconds
    return b"t%d:%b" % (len(raw), raw)


def of_date(days: int) -> bytes:
    """Days since 1970-01-01."""
    raw = b"%d" % days
    return b"y%d:%b" % (len(raw), raw)


def of_double(value: float) -> bytes:
    """IEEE 754, eight bytes; minus zero is zero."""
    return b"f8:" + _double(value + 0.0)


def of_bytes(value: bytes) -> bytes:
    return b"x%d:%b" % (len(value), value)


def of_uuid(value: UUID) -> bytes:
    return b"u16:" + value.bytes


def tuple_head(count: int) -> bytes:
    return b"k%d:" % count


def record_head(count: int) -> bytes:
    return b"r%d:" % count


def array_head(count: int) -> bytes:
    return b"a%d:" % count


def map_head(count: int) -> bytes:
    return b"m%d:" % count


def is_storable(text: str) -> bool:
    """Whether PostgreSQL, Avro and Kafka all take it: no U+0000, no lone surrogate."""
    if "\x00" in text:
        return False
    try:
        text.isascii() or text.encode()
    except UnicodeEncodeError:
        return False
    return True
