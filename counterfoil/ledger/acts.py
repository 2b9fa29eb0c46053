"""Acts of people: written in the transaction of what they did, read back, and their chain verified.

The newest act is read and the next one written under one lock, held to the end of the transaction: record an act last, after
every row that it is about is locked. Append-only; nothing here changes or removes one.
"""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

import orjson
from sqlalchemy import Connection, insert, select, text

from counterfoil.core.acts import Action, act_content, act_head
from counterfoil.core.texts import check_text, check_why
from counterfoil.ledger.names import Ledger
from counterfoil.ledger.tables import digest_secret
from counterfoil.ledger.tables_acts import act

LONGEST_SUBJECT = 200
LONGEST_RESULT = 200
BATCH = 5000  #: acts of one read while verifying

_LOCK = text("SELECT pg_advisory_xact_lock(hashtext('counterfoil.act'))")
#: A statement of its own, after the lock: it sees what the holder before has committed.
_NEWEST = text(
    """
SELECT counterfoil.ledger_time() AS at, session_user AS actor, COALESCE(l.id, 0) AS id, COALESCE(l.chain, ''::bytea) AS chain
FROM (VALUES (1)) AS one LEFT JOIN LATERAL (SELECT id, chain FROM counterfoil.act ORDER BY id DESC LIMIT 1) l ON true
"""
)


class Act(NamedTuple):
    """One act. `number` is an operation's; `detail` has counts and ids, never a payload."""

    id: int
    at: datetime
    actor: str
    action: str
    number: int | None
    subject: str
    reason: str
    result: str
    detail: dict[str, Any] | None


class Verified(NamedTuple):
    """What a walk over the chain found. `broken` is the first act that does not follow from those before it; None: all do."""

    acts: int
    broken: int | None
    head: bytes


def record(  # noqa: PLR0913 - who, what, why and result are what an act is
    connection: Connection,
    ledger: Ledger,
    action: Action,
    subject: str,
    reason: str,
    result: str,
    *,
    number: int | None = None,
    detail: Mapping[str, Any] | None = None,
) -> int:
    """Writes one act in the caller's transaction, as the login of its session; answers its id.

    `reason` is for people, 1 to 500 characters. Raises Refused for a text that is too long or that terminals obey.
    """
    check_text(action.value, "subject", subject, LONGEST_SUBJECT)
    check_text(action.value, "result", result, LONGEST_RESULT)
    check_why(subject, reason)
    connection.execute(_LOCK)
    newest = connection.execute(_NEWEST).one()
    told = orjson.loads(orjson.dumps(dict(detail))) if detail else None
    one = Act(newest.id + 1, newest.at, newest.actor, action.value, number, subject, reason, result, told)
    content = act_content(ledger.secret, _said(one))
    chain = act_head(bytes(newest.chain), one.id, content)
    connection.execute(insert(act).values(**one._asdict(), secret=ledger.secret_id, content=content, chain=chain))
    return one.id


def _said(one: Act) -> bytes:
    """What the digest covers: everything but the id, which the chain's head has."""
    said = one._asdict() | {"at": one.at.astimezone(UTC).isoformat(timespec="microseconds")}
    del said["id"]
    return orjson.dumps(said, option=orjson.OPT_SORT_KEYS)


_ACT = tuple(act.c[name] for name in Act._fields)


def read(
    connection: Connection, *, number: int | None = None, subject: str | None = None, before: int | None = None, limit: int = 50
) -> list[Act]:
    """Newest first; narrowed to one operation or one subject. `before`: an id, for the next page."""
    wanted = select(*_ACT).order_by(act.c.id.desc()).limit(limit)
    if number is not None:
        wanted = wanted.where(act.c.number == number)
    if subject is not None:
        wanted = wanted.where(act.c.subject == subject)
    if before is not None:
        wanted = wanted.where(act.c.id < before)
    return [Act(*row) for row in connection.execute(wanted)]


def verify(connection: Connection) -> Verified:
    """Walks the whole chain, a batch at a time: each act's digest, its place behind the one before, and no gap between (S15)."""
    secrets = {row.id: bytes(row.value) for row in connection.execute(select(digest_secret.c.id, digest_secret.c.value))}
    last, head = 0, b""
    for one, secret, content, chain in _walk(connection):
        secret_value = secrets.get(secret)
        told = secret_value is not None and act_content(secret_value, _said(one)) == content
        if not told or one.id != last + 1 or act_head(head, one.id, content) != chain:
            return Verified(last, one.id, head)
        last, head = one.id, chain
    return Verified(last, None, head)


def _walk(connection: Connection) -> Iterator[tuple[Act, int, bytes, bytes]]:
    after = 0
    while True:
        rows = connection.execute(
            select(*_ACT, act.c.secret, act.c.content, act.c.chain).where(act.c.id > after).order_by(act.c.id).limit(BATCH)
        ).all()
        for *said, secret, content, chain in rows:
            one = Act(*said)
            after = one.id
            yield one, secret, bytes(content), bytes(chain)
        if len(rows) < BATCH:
            return
