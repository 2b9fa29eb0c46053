"""What a ledger says of itself: its name, its epoch, and the secret of its keyed digests, read once an engine."""

from collections.abc import Callable
from typing import NamedTuple
from weakref import ReferenceType, WeakKeyDictionary, WeakSet, ref

from sqlalchemy import Connection, Engine, event, exc, select, text

from counterfoil.core.errors import Refused
from counterfoil.core.reasons import Reason
from counterfoil.ledger.tables import digest_secret, setting


class Ledger(NamedTuple):
    """The identity of a ledger. `secret` is never printed."""

    name: str
    epoch: int
    secret_id: int
    secret: bytes
    state_schema: int  #: schema id of the ledger's state records

    def __repr__(self) -> str:
        return f"Ledger(name={self.name!r}, epoch={self.epoch}, secret_id={self.secret_id})"


INSUFFICIENT_PRIVILEGE = "42501"
#: Whether this login writes no event at all. Only then may it go without the secret: what it wrote could not be verified.
_READS_ONLY = text(
    """
SELECT NOT has_column_privilege('counterfoil.digest_secret', 'value', 'SELECT')
    AND NOT has_table_privilege('counterfoil.event', 'INSERT')
"""
)
_NAMES = ("ledger", "epoch", "state_schema")
#: Read once an engine, and again after it connects anew: the database behind it may have been made again.
_known: WeakKeyDictionary[Engine, Ledger] = WeakKeyDictionary()
_watched: WeakSet[Engine] = WeakSet()


def ledger_of(connection: Connection) -> Ledger:
    """The ledger that this connection reaches. Raises Refused where `counterfoil init` has not run."""
    engine = connection.engine
    known = _known.get(engine)
    if known is None:
        if engine not in _watched:
            _watched.add(engine)
            event.listen(engine, "connect", _forget(ref(engine)))
        known = _read(connection)
        _known[engine] = known
    return known


def _forget(engine: ReferenceType[Engine]) -> Callable[..., None]:
    def forget(*_: object) -> None:
        if (alive := engine()) is not None:
            _known.pop(alive, None)

    return forget


def _secret(connection: Connection) -> tuple[int, bytes] | None:
    if connection.execute(_READS_ONLY).scalar_one():
        return 0, b""
    newest = select(digest_secret.c.id, digest_secret.c.value).order_by(digest_secret.c.id.desc()).limit(1)
    row = connection.execute(newest).one_or_none()
    return None if row is None else (row.id, row.value)


def _read(connection: Connection) -> Ledger:
    try:
        with connection.begin_nested():
            rows = connection.execute(select(setting.c.name, setting.c.value).where(setting.c.name.in_(_NAMES)))
            said = {row.name: row.value for row in rows}
            secret = _secret(connection)
    except exc.ProgrammingError as error:
        if getattr(error.orig, "sqlstate", None) == INSUFFICIENT_PRIVILEGE:
            raise
        raise Refused(Reason.LEDGER_NOT_INITIALISED) from None
    if len(said) < len(_NAMES) or secret is None:
        raise Refused(Reason.LEDGER_NOT_INITIALISED)
    return Ledger(said["ledger"], int(said["epoch"]), int(secret[0]), bytes(secret[1]), int(said["state_schema"]))
