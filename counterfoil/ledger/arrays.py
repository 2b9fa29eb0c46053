"""Array parameters in PostgreSQL's binary format: N rows travel as one array a column, in one statement.

psycopg sends Python lists as text; binary arrays cost a twentieth of that per row. Encoded arrays are bytes of a class of their
own, so registering its dumper on a connection changes nothing else that a caller does there.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import repeat
from operator import attrgetter
from struct import Struct
from typing import Any

from psycopg import BaseConnection
from psycopg.adapt import Dumper
from psycopg.postgres import types
from psycopg.pq import Format
from sqlalchemy import BindParameter, Connection, bindparam
from sqlalchemy.types import UserDefinedType


class Array(list[Any]):
    """A column of parameters; every element has the type that the bind names, or is None."""


class _Encoded(bytes):
    """An array in PostgreSQL's binary format."""


class _EncodedDumper(Dumper):
    format = Format.BINARY
    oid = 0  # the bind's cast says which

    def dump(self, obj: _Encoded) -> bytes:
        return obj


_Encoder = Callable[[Iterable[Any]], Iterable[bytes]]

_head, _length = Struct(">iIIii").pack, Struct(">i").pack
_NULL = _length(-1)
_LENGTHS = tuple(map(_length, range(1024)))
_PG_EPOCH = datetime(2000, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def _fixed(letter: str, size: int) -> _Encoder:
    pack = Struct(f">i{letter}").pack
    return lambda values: map(pack, repeat(size), values)


def _bytes(values: Iterable[bytes]) -> Iterable[bytes]:
    for value in values:
        size = len(value)
        yield _LENGTHS[size] if size < 1024 else _length(size)
        yield value


def _texts(values: Iterable[str]) -> Iterable[bytes]:
    return _bytes(map(str.encode, values))


def _uuids(values: Iterable[Any]) -> Iterable[bytes]:
    return _bytes(map(attrgetter("bytes"), values))


def _instants(values: Iterable[datetime]) -> Iterable[bytes]:
    return _INT8((value - _PG_EPOCH) // _MICROSECOND for value in values)


_INT8 = _fixed("q", 8)
_ENCODERS: Mapping[str, _Encoder] = {
    "int2": _fixed("h", 2),
    "int4": _fixed("i", 4),
    "int8": _INT8,
    "float8": _fixed("d", 8),
    "bool": _fixed("?", 1),
    "text": _texts,
    "bytea": _bytes,
    "uuid": _uuids,
    "timestamptz": _instants,
}


def _encode(values: Sequence[Any], oid: int, encoder: _Encoder) -> _Encoded:
    """The whole array. A column whose values are all the same is encoded once, as most columns of a batch are."""
    count = len(values)
    if not count:
        return _Encoded(_head(0, 0, oid, 0, 0)[:12])
    first = values[0]
    nulls = values.count(None)
    head = _head(1, 1 if nulls else 0, oid, count, 1)
    if nulls == count:
        return _Encoded(head + _NULL * count)
    if not nulls:
        body = b"".join(encoder((first,))) * count if values.count(first) == count else b"".join(encoder(values))
        return _Encoded(head + body)
    return _Encoded(head + b"".join([_NULL if value is None else b"".join(encoder((value,))) for value in values]))


class _ArrayOf(UserDefinedType[Any]):
    cache_ok = True
    render_bind_cast = True

    def __init__(self, element: str) -> None:
        self.element = element

    def get_col_spec(self, **_: Any) -> str:
        return f"{self.element}[]"

    def bind_processor(self, dialect: Any) -> Callable[[Any], Any]:
        oid, encoder = types[self.element].oid, _ENCODERS[self.element]
        return lambda values: _encode(values, oid, encoder)


def column(name: str, element: str) -> BindParameter[Any]:
    """A bind for one array column. `element` is PostgreSQL's name of the type; prefix `name`, it must not be a column's."""
    if element not in _ENCODERS:
        raise ValueError(f"no array of {element} can be sent")
    return bindparam(name, type_=_ArrayOf(element))


def columns(names: Iterable[str], rows: Iterable[tuple[Any, ...]]) -> Mapping[str, Array]:
    """Turns rows into the array parameters of a statement; no rows give empty arrays."""
    keys = tuple(names)
    turned = [Array(values) for values in zip(*rows, strict=True)]
    return dict(zip(keys, turned or [Array() for _ in keys], strict=True))


def prepare_driver(driver: Any) -> None:
    """Lets a psycopg connection send arrays encoded here; every other type stays as its owner has it."""
    if not isinstance(driver, BaseConnection):
        raise TypeError("a ledger is reached through psycopg 3: use a postgresql+psycopg:// engine")
    driver.adapters.register_dumper(_Encoded, _EncodedDumper)


def prepare(connection: Connection) -> None:
    """The same for a caller's connection, whose engine is not ours."""
    prepare_driver(connection.connection.driver_connection)
