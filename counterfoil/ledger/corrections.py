"""Writing a correction: one more revision of a quarantined operation's payload, with its event. The old ones stay.

Void where the operation moved or got another revision since it was read.
"""

from collections.abc import Mapping
from typing import Any

import orjson
from sqlalchemy import Connection, text

from counterfoil.core.chain import event_content
from counterfoil.core.events import EventKind
from counterfoil.core.standing import Standing
from counterfoil.ledger.names import Ledger

_CORRECT = text(
    """
WITH clock AS MATERIALIZED (SELECT counterfoil.ledger_time() AS now),
corrected AS (
    UPDATE counterfoil.state s SET
        revision = s.revision + 1, events = s.events + 1,
        chain = sha256(s.chain || int8send(s.number) || int4send(s.sequence) || convert_to(:kind, 'UTF8')
            || CAST(:content AS bytea))
    FROM clock WHERE s.number = :number AND s.sequence = :sequence AND s.revision = :revision AND s.state = 'quarantined'
    RETURNING s.number, s.sequence, s.events, s.attempt, s.revision, s.chain, now
),
kept AS (
    INSERT INTO counterfoil.payload (number, revision, value, value_hash, created_at)
    SELECT number, revision, CAST(:value AS bytea), sha256(CAST(:value AS bytea)), now FROM corrected
)
INSERT INTO counterfoil.event (number, ordinal, sequence, at, kind, state, attempt, reason, detail, secret, content, chain)
SELECT number, events, sequence, now, :kind, 'quarantined', attempt, :kind, CAST(:detail AS jsonb), :secret,
    CAST(:content AS bytea), chain
FROM corrected
RETURNING number
"""
)


def correct(connection: Connection, ledger: Ledger, standing: Standing, value: bytes, detail: Mapping[str, Any]) -> bool:
    """Writes the next revision. `detail` names what changed by its path, never by its value. False: somebody was first."""
    kind = EventKind.FIXED.value
    told = orjson.dumps(dict(detail), option=orjson.OPT_SORT_KEYS)
    parameters = {
        "kind": kind,
        "content": event_content(ledger.secret, kind, kind, told),
        "number": standing.number,
        "sequence": standing.sequence,
        "revision": standing.revision,
        "value": value,
        "detail": told.decode(),
        "secret": ledger.secret_id,
    }
    return connection.execute(_CORRECT, parameters).one_or_none() is not None
