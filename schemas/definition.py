"""Reads one .avsc file: its normal form, the hash that the lock pins, its tree and the schema for the writer.

The normal form has full names, sorted properties and no docs; it keeps logical types, defaults, aliases and PII tags, which
Avro's own parsing form drops although a change of one changes what a record means. No registry is asked and nothing is cached.
"""

from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import fastavro
import orjson

from counterfoil.core.errors import Refused
from counterfoil.core.reasons import Reason
from counterfoil.schemas.shape import PRIMITIVES, Shape, mismatch, shape_of

_STRUCTURE = frozenset({"type", "name", "fields", "items", "values", "symbols", "size"})
_LARGEST_FILE = 1 << 20


@dataclass(frozen=True, slots=True)
class Definition:
    subject: str  #: full name of the record: the record name strategy
    text: bytes  #: normal form
    sha256: str  #: hex digest of the normal form
    shape: Shape
    plain: Any  #: parsed by fastavro, without logical types: the codec hands it wire values


def read_definition(path: Path) -> Definition:
    """Refused with contract_missing or contract_mismatch; the path in the error is the field's, never the machine's."""
    try:
        raw = path.read_bytes()
    except OSError:
        raw = b""
    if not raw:
        raise Refused(Reason.CONTRACT_MISSING, subject=path.name)
    return define(raw, path.name)


def define(raw: bytes, file: str) -> Definition:
    """The definition that these bytes hold; `file` names them in errors."""
    try:
        schema = orjson.loads(raw) if len(raw) <= _LARGEST_FILE else None
    except orjson.JSONDecodeError:
        schema = None
    if not isinstance(schema, dict) or schema.get("type") != "record":
        raise mismatch("", f"{file}: not a JSON file with one record")
    try:
        normal = _normal(schema, "")
        shape = shape_of(normal)
    except (KeyError, TypeError, AttributeError, RecursionError):
        normal = shape = None
    if shape is None:
        raise mismatch("", f"{file}: not an Avro schema")
    text = orjson.dumps(normal, option=orjson.OPT_SORT_KEYS)
    return Definition(shape.name, text, sha256(text).hexdigest(), shape, _parsed(_plain(normal), file))


def _normal(schema: Any, namespace: str) -> Any:
    if isinstance(schema, list):
        return [_normal(each, namespace) for each in schema]
    if isinstance(schema, str):
        return schema if schema in PRIMITIVES else _full(schema, namespace)
    kind = schema["type"]
    if isinstance(kind, dict | list) or kind not in {"record", "enum", "fixed", "array", "map", *PRIMITIVES}:
        # {"type": X} around a type of its own, as fields are often written
        return _normal(kind, namespace)
    made = {name: value for name, value in schema.items() if name not in ("doc", "namespace")}
    if kind in ("record", "enum", "fixed"):
        made["name"] = _full(schema["name"], schema.get("namespace", namespace))
        namespace = made["name"].rpartition(".")[0]
        if "aliases" in schema:
            made["aliases"] = [_full(alias, namespace) for alias in schema["aliases"]]
    if kind == "record":
        made["fields"] = [_normal_field(each, namespace) for each in schema["fields"]]
    for below in {"array": ("items",), "map": ("values",)}.get(kind, ()):
        made[below] = _normal(schema[below], namespace)
    return kind if made.keys() == {"type"} and kind in PRIMITIVES else made


def _normal_field(field: Any, namespace: str) -> Any:
    made = {name: value for name, value in field.items() if name != "doc"}
    made["type"] = _normal(field["type"], namespace)
    return made


def _full(name: str, namespace: str) -> str:
    return name if "." in name or not namespace else f"{namespace}.{name}"


def _plain(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_plain(each) for each in schema]
    if isinstance(schema, str):
        return schema
    made = {name: value for name, value in schema.items() if name in _STRUCTURE}
    if "fields" in made:
        made["fields"] = [{"name": each["name"], "type": _plain(each["type"])} for each in made["fields"]]
    for below in ("items", "values"):
        if below in made:
            made[below] = _plain(made[below])
    return made


def _parsed(plain: Any, file: str) -> Any:
    try:
        return fastavro.parse_schema(plain)
    except (fastavro.schema.SchemaParseException, fastavro.schema.UnknownType, ValueError, TypeError):
        pass
    raise mismatch("", f"{file}: not an Avro schema")
