"""HMAC-SHA256 under a secret that is used again and again: the digests that nobody can test a guess against.

The secret's two blocks are hashed once and copied, which takes a third of `hmac.digest`. Must never print a secret.
"""

from functools import lru_cache
from hashlib import sha256
from typing import Any

BLOCK = 64  #: bytes, of SHA-256
_INNER = bytes(number ^ 0x36 for number in range(256))
_OUTER = bytes(number ^ 0x5C for number in range(256))


def keyed(secret: bytes, content: bytes) -> bytes:
    """What `hmac.digest(secret, content, "sha256")` answers."""
    inner, outer = _begun(secret)
    first, second = inner.copy(), outer.copy()
    first.update(content)
    second.update(first.digest())
    digest: bytes = second.digest()
    return digest


@lru_cache(maxsize=16)
def _begun(secret: bytes) -> tuple[Any, Any]:
    block = (secret if len(secret) <= BLOCK else sha256(secret).digest()).ljust(BLOCK, b"\0")
    return sha256(block.translate(_INNER)), sha256(block.translate(_OUTER))
