"""Array parameters in PostgreSQL's binary format: N rows travel as one array a column, in one statement.

psycopg sends Python lists as text; binary arrays cost an eighth of that per row. `Array` is a list of its own class, so
registering its dumper on a connection changes nothing else that a caller does there.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from psycopg import BaseConnection
from psycopg.types.array import ListBinaryDumper
from sqlalchemy import BindParameter, Connection, bindparam
from sqlalchemy.types import UserDefinedType


class Array(list[Any]):
    """A column of parameters; every element has the type that the bind names, or is None."""


class _ArrayOf(UserDefinedType[Any]):
    cache_ok = True
    render_bind_cast = True

    def __init__(self, element: str) -> None:
        self.element = element

    def get_col_spec(self, **_: Any) -> str:
        return f"{self.element}[]"


def column(name: str, element: str) -> BindParameter[Any]:
    """A bind for one array column. `element` is PostgreSQL's name of the type; prefix `name`, it must not be a column's."""
    return bindparam(name, type_=_ArrayOf(element))


def columns(names: Iterable[str], rows: Iterable[tuple[Any, ...]]) -> Mapping[str, Array]:
    """Turns rows into the array parameters of a statement; no rows give empty arrays."""
    keys = tuple(names)
    turned = [Array(values) for values in zip(*rows, strict=True)]
    return dict(zip(keys, turned or [Array() for _ in keys], strict=True))


def prepare_driver(driver: Any) -> None:
    """Lets a psycopg connection send `Array`; every other type stays as its owner has it."""
    if not isinstance(driver, BaseConnection):
        raise TypeError("a ledger is reached through psycopg 3: use a postgresql+psycopg:// engine")
    driver.adapters.register_dumper(Array, ListBinaryDumper)


def prepare(connection: Connection) -> None:
    """The same for a caller's connection, whose engine is not ours."""
    prepare_driver(connection.connection.driver_connection)
