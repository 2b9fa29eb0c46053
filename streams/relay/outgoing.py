"""An outbox row as the record that leaves: its road, its topic and its headers; key and value go as they are.

It says which rows can never be sent, before anything is handed to the producer. It sends nothing. Rows come by the ten thousand,
so what the rows of one type share is made once.
"""

from collections.abc import Callable
from dataclasses import dataclass

import orjson

from counterfoil.core.identity import key_text
from counterfoil.core.reasons import Reason
from counterfoil.core.roads import DEAD_LETTER, STATE, road_of, topic_of
from counterfoil.ledger.relaying import Waiting
from counterfoil.schemas.envelope import CommandHeaders, Headers, StateHeaders, dead_letter_headers, source


@dataclass(frozen=True, eq=False)
class Lane:
    """What the rows of one kind and type share. `headers` answers a reason for a row that can never be sent."""

    kind: str
    type: str
    road: str
    topic: str
    keyed: bool  #: the compacted topic: the last record of a key wins
    headers: Callable[[Waiting], Headers | Reason]


class Composer:
    """The lanes of one ledger."""

    def __init__(self, ledger: str) -> None:
        self._ledger, self._source = ledger, source(ledger)
        self._lanes: dict[tuple[str, str], Lane] = {}

    def lane(self, kind: str, type_name: str) -> Lane:
        """The lane of a row of this kind and type."""
        lane = self._lanes.get((kind, type_name))
        if lane is None:
            road = road_of(kind, type_name)
            headers = _state if kind == STATE else _dead_letter if kind == DEAD_LETTER else _command
            lane = Lane(kind, type_name, road, topic_of(self._ledger, road), kind == STATE, headers(self._source, type_name))
            self._lanes[kind, type_name] = lane
        return lane


def _command(made_by: bytes, type_name: str) -> Callable[[Waiting], Headers | Reason]:
    of = CommandHeaders(made_by, type_name).of

    def headers(row: Waiting) -> Headers | Reason:
        _, row_id, _, _, number, operation, revision, generation, key, value, _, traceparent, _ = row
        if value is None:
            return Reason.NULL_VALUE  # no such revision of the payload
        if not key or operation is None or number is None:
            return Reason.KEY_MISSING
        made = of(number, operation, revision, key_text(operation.replace("-", ""), revision, generation), row_id)
        if traceparent:
            made.append(("traceparent", traceparent.encode()))
        return made

    return headers


def _state(made_by: bytes, type_name: str) -> Callable[[Waiting], Headers | Reason]:
    of = StateHeaders(made_by, type_name).of

    def headers(row: Waiting) -> Headers | Reason:
        _, row_id, _, _, _, operation, _, _, key, _, _, traceparent, _ = row
        if not key or operation is None:
            return Reason.KEY_MISSING  # a compacted topic takes no record without a key, and an empty one is no operation's
        made = of(operation, row_id)
        if traceparent:
            made.append(("traceparent", traceparent.encode()))
        return made

    return headers


def _dead_letter(made_by: bytes, _: str) -> Callable[[Waiting], Headers | Reason]:
    def headers(row: Waiting) -> Headers | Reason:
        row_id, texts = row[1], row[10]
        try:
            return dead_letter_headers(made_by, orjson.loads(texts) if texts is not None else [], row_id)
        except (ValueError, TypeError):  # not the list of pairs that every writer of ours writes
            return Reason.UNDECODABLE_FRAME

    return headers
