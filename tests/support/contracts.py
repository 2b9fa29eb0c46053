"""Contracts made in a test: a payload class with its .avsc as a value, under a lock of its own."""

from __future__ import annotations

from typing import Any

import orjson

from counterfoil.schemas.contract import Contract
from counterfoil.schemas.definition import Definition, define
from counterfoil.schemas.lock import RegistryLock
from counterfoil.schemas.state_record import StateContract
from counterfoil.schemas.system import state_definition

DECIMAL_4_2 = {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}
MICROS = {"type": "long", "logicalType": "timestamp-micros"}
MILLIS = {"type": "long", "logicalType": "timestamp-millis"}


def record(name: str = "Payload", **fields: Any) -> dict[str, Any]:
    """A record schema with these fields, in this order."""
    return {
        "type": "record",
        "name": name,
        "namespace": "acme",
        "fields": [{"name": each, "type": kind} for each, kind in fields.items()],
    }


def definition(schema: dict[str, Any]) -> Definition:
    return define(orjson.dumps(schema), "payload.avsc")


def contract(payload: type[Any], schema: dict[str, Any], max_bytes: int = 900_000) -> Contract[Any]:
    """The codec of a payload class, under the first local id."""
    made = definition(schema)
    return Contract(payload, made, RegistryLock().with_local(made), max_bytes)


def state_codec() -> StateContract:
    return StateContract(RegistryLock().with_local(state_definition()))
