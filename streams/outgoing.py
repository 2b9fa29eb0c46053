"""An outbox row as the record that leaves: its topic's road, key, value and headers.

It says which rows can never be sent, before anything is handed to the producer. It sends nothing.
"""

from typing import NamedTuple
from uuid import UUID

import orjson

from counterfoil.core.identity import idempotency_key
from counterfoil.core.reasons import Reason
from counterfoil.ledger.relaying import Waiting
from counterfoil.schemas.envelope import Command, Headers, command_headers, dead_letter_headers, source, state_headers
from counterfoil.streams.roads import DEAD_LETTER, STATE, road_of


class Outgoing(NamedTuple):
    """A record to send."""

    road: str
    key: bytes | None
    value: bytes | None
    headers: Headers


class Composer:
    """Makes records of one ledger's rows."""

    def __init__(self, ledger: str) -> None:
        self._source = source(ledger)
        self._roads: dict[tuple[str, str], str] = {}

    def record(self, row: Waiting) -> Outgoing | Reason:
        """The record, or why the row can never be sent."""
        kind, type_name = row.kind, row.type
        road = self._roads.get((kind, type_name))
        if road is None:
            road = self._roads[kind, type_name] = road_of(kind, type_name)
        if kind == STATE:
            if not row.key:
                return Reason.KEY_MISSING  # a compacted topic takes no record without a key, and an empty one is no operation's
            if row.operation_id is None:
                return Reason.KEY_MISSING
            headers = state_headers(self._source, UUID(row.operation_id), type_name, row.id, row.traceparent)
            return Outgoing(road, row.key, row.value, headers)
        if kind == DEAD_LETTER:
            return self._dead_letter(road, row)
        return self._command(road, row)

    def _dead_letter(self, road: str, row: Waiting) -> Outgoing | Reason:
        try:
            texts = orjson.loads(row.headers) if row.headers is not None else []
            headers = dead_letter_headers(self._source, texts, row.id)
        except (ValueError, TypeError):  # not the list of pairs that every writer of ours writes
            return Reason.UNDECODABLE_FRAME
        return Outgoing(road, row.key, row.value, headers)

    def _command(self, road: str, row: Waiting) -> Outgoing | Reason:
        if row.value is None:
            return Reason.NULL_VALUE
        if not row.key or row.operation_id is None or row.number is None:
            return Reason.KEY_MISSING
        operation = UUID(row.operation_id)
        key = idempotency_key(operation, row.revision, row.generation)
        command = Command(row.number, operation, row.type, row.revision, key, row.id, row.traceparent)
        return Outgoing(road, row.key, row.value, command_headers(self._source, command))
