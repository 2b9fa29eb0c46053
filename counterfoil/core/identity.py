"""Identities: which calls are one operation, and the names that derive from it.

Everything here is a pure function of ledger, type and the declared identity, in every process and for ever: nothing derives
from a Kafka offset, a clock or Python's own hash. A key that has more than one spelling is refused, never guessed.
"""

from functools import lru_cache
from hashlib import sha256
from unicodedata import normalize
from uuid import UUID

from counterfoil.core import canonical
from counterfoil.core.errors import Refused
from counterfoil.core.keyed import keyed
from counterfoil.core.reasons import Reason
from counterfoil.core.records import Key, OperationId, Part

ENTITY_BYTES = 512  #: longest entity, in bytes of UTF-8
_INT64 = 1 << 63
_NOT_VERSION_OR_VARIANT = ~((0xF << 76) | (0x3 << 62))
_VERSION_8 = (0x8 << 76) | (0x2 << 62)


def operation_id(ledger: str, type: str, identity: Key) -> OperationId:  # noqa: A002  # the word of the vocabulary
    """The id of the operation that this identity names; Refused where a part is no str, int or UUID, or is empty."""
    return OperationId(_uuid8(sha256(_space(ledger, type) + canonical_key(identity)).digest()))


def entity_id(ledger: str, type: str, entity: str) -> UUID:  # noqa: A002
    """The id of an entity of one type, from its text: what the ledger keeps its order under."""
    return _uuid8(sha256(b"entity:" + _space(ledger, type) + canonical.of_text(entity)).digest())


@lru_cache(maxsize=1024)
def _space(ledger: str, type: str) -> bytes:  # noqa: A002
    """What all identities of one type in one ledger begin with."""
    return b"cf%d:%b%b" % (canonical.FORM, canonical.of_text(ledger), canonical.of_text(type))


def canonical_key(key: Key) -> bytes:
    """Canonical form 1 of an identity. A tuple of one part is not that part."""
    if not isinstance(key, tuple):
        return _canonical_part(key)
    if not key:
        raise Refused(Reason.KEY_EMPTY)
    return canonical.tuple_head(len(key)) + b"".join(map(_canonical_part, key))


def versioned(entity: Key, version: object) -> Key:
    """The identity that LatestWins means: (entity, version)."""
    number = version_number(version)
    return (*entity, number) if isinstance(entity, tuple) else (entity, number)


def version_number(version: object) -> int:
    """A version that grows: an int within 64 bits, never a bool, a text or a time."""
    if isinstance(version, bool) or not isinstance(version, int) or not -_INT64 <= version < _INT64:
        raise Refused(Reason.VERSION_NOT_INTEGER)
    return int(version)


def entity_text(key: Key) -> str:
    """The entity as text, at most 512 bytes of UTF-8: the Kafka key, and the default business key.

    One part is written as it is; several as `(a,b)`, with a backslash before what would read as another entity. The number
    452 and the text "452" are one entity on purpose: what concerns them must not run side by side.
    """
    if isinstance(key, tuple):
        if not key:
            raise Refused(Reason.KEY_EMPTY)
        text = "(" + ",".join(_inner(_plain(part)) for part in key) + ")"
    else:
        text = _plain(key)
        if text[0] in "(\\":
            text = "\\" + text
    if len(text.encode()) > ENTITY_BYTES:
        raise Refused(Reason.KEY_TOO_LONG)
    return text


def idempotency_key(operation_id: UUID, revision: int, generation: int) -> str:
    """The same for every attempt at one revision and generation; printable ASCII, at most 80 characters."""
    return key_text(operation_id.hex, revision, generation)


def key_text(operation_hex: str, revision: int, generation: int) -> str:
    """The idempotency key where the id is at hand as its 32 hexadecimal digits."""
    return f"cf1-{operation_hex}-r{revision}-g{generation}"


def result_key(operation_id: UUID) -> str:
    """Object path or row key that no other operation has."""
    return str(operation_id)


def keyed_digest(secret: bytes, content: bytes) -> bytes:
    """The number of the canonical form, then HMAC-SHA256: 33 bytes. Without the secret nobody can test a guess."""
    return b"\x01" + keyed(secret, content)


def _canonical_part(part: Part) -> bytes:
    if isinstance(part, str):
        _check_text(part)
        return canonical.of_text(part)
    if isinstance(part, UUID):
        return canonical.of_uuid(part)
    return canonical.of_integer(_whole(part))


def _plain(part: Part) -> str:
    if isinstance(part, str):
        _check_text(part)
        return str.__str__(part) if part.isascii() else normalize("NFC", part)
    return str(part) if isinstance(part, UUID) else str(_whole(part))


def _inner(text: str) -> str:
    return text.replace("\\", "\\\\").replace(",", "\\,").replace(")", "\\)")


def _check_text(part: str) -> None:
    if not part:
        raise Refused(Reason.KEY_EMPTY)
    if not canonical.is_storable(part):
        raise Refused(Reason.FORBIDDEN_TEXT)


def _whole(part: object) -> int:
    if isinstance(part, bool) or not isinstance(part, int):
        raise Refused(Reason.KEY_NOT_ALLOWED)
    if not -_INT64 <= part < _INT64:
        raise Refused(Reason.NUMBER_OUT_OF_RANGE)
    return int(part)


def _uuid8(digest: bytes) -> UUID:
    # UUID(version=8) raises before Python 3.14.
    return UUID(int=int.from_bytes(digest[:16], "big") & _NOT_VERSION_OR_VARIANT | _VERSION_8)
