"""What a ledger says of itself: its name, its epoch, and the secret of its keyed digests, read once an engine."""

from typing import NamedTuple
from weakref import WeakKeyDictionary

from sqlalchemy import Connection, Engine, exc, select

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


_NAMES = ("ledger", "epoch", "state_schema")
_known: WeakKeyDictionary[Engine, Ledger] = WeakKeyDictionary()


def ledger_of(connection: Connection) -> Ledger:
    """The ledger that this connection reaches. Raises Refused where `counterfoil init` has not run."""
    known = _known.get(connection.engine)
    if known is None:
        known = _read(connection)
        _known[connection.engine] = known
    return known


def _read(connection: Connection) -> Ledger:
    try:
        with connection.begin_nested():
            rows = connection.execute(select(setting.c.name, setting.c.value).where(setting.c.name.in_(_NAMES)))
            said = {row.name: row.value for row in rows}
            newest = connection.execute(
                select(digest_secret.c.id, digest_secret.c.value).order_by(digest_secret.c.id.desc()).limit(1)
            )
            secret = newest.one_or_none()
    except exc.ProgrammingError:
        raise Refused(Reason.LEDGER_NOT_INITIALISED) from None
    if len(said) < len(_NAMES) or secret is None:
        raise Refused(Reason.LEDGER_NOT_INITIALISED)
    return Ledger(said["ledger"], int(said["epoch"]), int(secret[0]), bytes(secret[1]), int(said["state_schema"]))
