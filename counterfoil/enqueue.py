"""Enqueue: operations accepted on the caller's own connection, in the caller's own transaction. Nothing here commits.

Everything is checked while the caller still has a stack trace: what is accepted here, Avro, Kafka and PostgreSQL accept. No error
says a value, only the path of the field and what to do.
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from hashlib import sha256
from itertools import islice
from typing import Any, NamedTuple, TypeVar
from uuid import UUID

from sqlalchemy import Connection, Engine
from sqlalchemy.orm import Session

from counterfoil.core import decisions, identity
from counterfoil.core.chain import event_content
from counterfoil.core.decisions import First
from counterfoil.core.errors import Refused
from counterfoil.core.operation_type import OperationType
from counterfoil.core.order import LatestWins, ordering_of
from counterfoil.core.reasons import Reason
from counterfoil.core.records import Key, OperationId, Record
from counterfoil.core.shards import shard
from counterfoil.core.standing import Rules
from counterfoil.core.texts import check_text
from counterfoil.failpoints import failpoint
from counterfoil.ledger import accepting
from counterfoil.ledger.accepting import Accepted, Common
from counterfoil.ledger.names import Ledger, ledger_of
from counterfoil.schemas.contract import contract_of
from counterfoil.telemetry import current_traceparent

R = TypeVar("R", bound=Record)
Caller = Connection | Session  #: an AsyncSession: `await session.run_sync(lambda s: enqueue(s, ...))`

#: How many operations one statement accepts. Memory stays bounded however long the iterable is.
CHUNK = 1000
#: After this a queued operation's record is looked for, in case it was lost. Callers read no settings: the worker's
#: `resend_after` counts from the second look on.
RESEND_AFTER = timedelta(seconds=60)
_NO_TIME = timedelta(0)


def enqueue(
    caller: Caller,
    type: OperationType[R],  # noqa: A002  # the word of the vocabulary
    payload: R,
    *,
    not_before: datetime | None = None,
    correlation_id: str | None = None,
) -> OperationId:
    """Accepts one operation in the caller's transaction and answers its id. The same content twice is one operation.

    `not_before` (aware) is the earliest admission. Raises Refused; nothing is written then.
    """
    connection = connection_of(caller)
    ledger = ledger_of(connection)
    common = _common(type, not_before, correlation_id)
    return _accept(connection, ledger, type, common, [payload])[0]


def enqueue_many(
    caller: Caller,
    type: OperationType[R],  # noqa: A002
    payloads: Iterable[R],
    *,
    not_before: datetime | None = None,
    correlation_id: str | None = None,
) -> Sequence[OperationId]:
    """Accepts all of them or, raising Refused, none; answers their ids in the order given. Streams: any number of payloads."""
    connection = connection_of(caller)
    ledger = ledger_of(connection)
    common = _common(type, not_before, correlation_id)
    ids: list[OperationId] = []
    with connection.begin_nested():
        for chunk in _chunks(payloads):
            ids.extend(_accept(connection, ledger, type, common, chunk))
    return ids


def operation_id(caller: Caller, type: OperationType[R], payload: R) -> OperationId:  # noqa: A002
    """The id that this payload has, enqueued or not. `caller` gives the ledger's name, a part of the id."""
    ledger = ledger_of(connection_of(caller))
    return identity.operation_id(ledger.name, type.name, _named(type, payload).identity)


class Prepared(NamedTuple):
    """Operations checked and encoded for one ledger, to be written later by `enqueue_prepared`."""

    ledger: Ledger
    common: Common
    rows: Sequence[Accepted]

    def __repr__(self) -> str:
        return f"Prepared({self.common.type}, {len(self.rows)} operations)"


def prepare(
    caller: Caller,
    type: OperationType[R],  # noqa: A002
    payloads: Iterable[R],
    *,
    not_before: datetime | None = None,
    correlation_id: str | None = None,
) -> Prepared:
    """Checks and encodes without writing, so that a caller's transaction can be short. Takes the options of `enqueue`."""
    ledger = ledger_of(connection_of(caller))
    common = _common(type, not_before, correlation_id)
    return Prepared(ledger, common, _rows(ledger, type, payloads))


def enqueue_prepared(caller: Caller, prepared: Prepared) -> Sequence[OperationId]:
    """Accepts prepared operations: all of them or none, in the order given."""
    connection = connection_of(caller)
    rows = prepared.rows
    with connection.begin_nested():
        for start in range(0, len(rows), CHUNK):
            _write(connection, prepared.ledger, prepared.common, rows[start : start + CHUNK])
    return [OperationId(row.operation_id) for row in rows]


def connection_of(caller: Caller) -> Connection:
    """The caller's connection. Raises Refused for an async one, for one that commits by itself, and for what is none."""
    if isinstance(caller, Session):
        connection = caller.connection()
    elif isinstance(caller, Connection):
        connection = caller
    else:
        raise _no_connection(caller)
    if getattr(connection.connection.driver_connection, "autocommit", False):
        raise Refused(Reason.NO_TRANSACTION)
    return connection


def _no_connection(caller: object) -> Refused:
    if isinstance(caller, Engine):
        return Refused(Reason.CALLER_IS_ENGINE)
    if any(kind.__module__.startswith("sqlalchemy.ext.asyncio") for kind in type(caller).__mro__):
        return Refused(Reason.CALLER_NOT_SYNC)
    return Refused(Reason.CALLER_UNKNOWN)


class _Names(NamedTuple):
    identity: Key
    entity: Key
    version: str | None


def _named(type: OperationType[R], payload: R) -> _Names:  # noqa: A002
    """What the declared order says of a payload. A failure of the user's function is a refusal, without its text."""
    if not isinstance(payload, type.payload):
        raise Refused(Reason.WRONG_TYPE, subject=type.name)
    order: Any = type.order
    try:
        if isinstance(order, LatestWins):
            entity, version = order.entity(payload), order.version(payload)
        else:
            called, version = order.identity(payload), None
            entity = called if order.entity is None else order.entity(payload)
    except Exception:  # noqa: BLE001  # a user's function: any error is a refusal
        raise Refused(Reason.KEY_NOT_ALLOWED, subject=type.name) from None
    if isinstance(order, LatestWins):
        return _Names(identity.versioned(entity, version), entity, str(identity.version_number(version)))
    return _Names(called, entity, None)


def named(ledger: Ledger, type: OperationType[R], payload: R) -> tuple[UUID, str, str | None]:  # noqa: A002
    """The id, the entity's text and the version that a payload has: what a correction must leave as they are."""
    names = _named(type, payload)
    called = identity.operation_id(ledger.name, type.name, names.identity)
    return called, identity.entity_text(names.entity), names.version


def _rows(ledger: Ledger, type: OperationType[R], payloads: Iterable[R]) -> list[Accepted]:  # noqa: A002
    contract, secret = contract_of(type), ledger.secret
    rows = []
    for payload in payloads:
        named = _named(type, payload)
        value, canonical = contract.encode_both(payload)
        digest = identity.keyed_digest(secret, canonical)
        entity = identity.entity_text(named.entity)
        key = entity.encode()
        rows.append(
            Accepted(
                identity.operation_id(ledger.name, type.name, named.identity),
                entity,
                named.version,
                digest,
                value,
                sha256(value).digest(),
                event_content(secret, "accepted", "accepted", digest),
                shard(key),
                key,
            )
        )
    return rows


def _accept(
    connection: Connection,
    ledger: Ledger,
    type: OperationType[R],  # noqa: A002
    common: Common,
    payloads: Sequence[R],
) -> list[OperationId]:
    rows = _rows(ledger, type, payloads)
    _write(connection, ledger, common, rows)
    return [OperationId(row.operation_id) for row in rows]


def _write(connection: Connection, ledger: Ledger, common: Common, rows: Sequence[Accepted]) -> None:
    distinct: dict[UUID, Accepted] = {}
    for row in rows:
        if distinct.setdefault(row.operation_id, row).digest != row.digest:
            raise Refused(Reason.IDENTITY_CONFLICT, subject=str(row.operation_id))
    failpoint("enqueue.before_write")
    before = accepting.write(connection, ledger, common, list(distinct.values()))
    failpoint("enqueue.after_write")
    if before:
        _check_there(connection, ledger, [row for row in distinct.values() if row.operation_id in before])


def _check_there(connection: Connection, ledger: Ledger, rows: Sequence[Accepted]) -> None:
    """Operations that the ledger held before must have this content, in one of their revisions (S21)."""
    held = accepting.there(connection, rows)
    for row in rows:
        there = held.get(row.operation_id)
        if there is None or not (there.same_bytes or there.digest == row.digest):
            raise Refused(Reason.IDENTITY_CONFLICT, subject=str(row.operation_id))


def _common(type: OperationType[Any], not_before: datetime | None, correlation_id: str | None) -> Common:  # noqa: A002
    if not_before is not None:
        _check_instant(type.name, not_before)
    if correlation_id is not None:
        check_text(type.name, "correlation_id", correlation_id, 255)
    return Common(type.name, _first(type), not_before, correlation_id, current_traceparent(), ordering_of(type.order))


def _check_instant(subject: str, not_before: object) -> None:
    if not isinstance(not_before, datetime):
        raise Refused(Reason.WRONG_TYPE, path="not_before", subject=subject)
    try:
        offset = not_before.utcoffset()
    except Exception:  # noqa: BLE001  # a tzinfo of the user's own: any error is a refusal
        offset = None
    if offset is None:
        raise Refused(Reason.NAIVE_DATETIME, path="not_before", subject=subject)


def _first(type: OperationType[Any]) -> First:  # noqa: A002
    rules = Rules.of(type, send_grace=_NO_TIME, in_ledger_time=_NO_TIME, review_within=_NO_TIME)
    return decisions.first_due(rules, resend_after=RESEND_AFTER)


def _chunks(payloads: Iterable[R]) -> Iterator[list[R]]:
    source = iter(payloads)
    while chunk := list(islice(source, CHUNK)):
        yield chunk
