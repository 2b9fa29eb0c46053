"""What an event's hash covers: the keyed digest of its content, and the head of the operation's chain after it.

Pure; the secret is handed in. The statement that writes an event computes the same head in SQL; whoever verifies a chain does so
here.
"""

import hashlib
from functools import lru_cache
from struct import pack

from counterfoil.core.keyed import keyed


def event_content(secret: bytes, kind: str, reason: str, detail: bytes) -> bytes:
    """The keyed digest (32 bytes) of what an event says. `detail` is its JSON with sorted keys, or the payload's digest."""
    return _said(secret, kind, reason) if detail == b"" else keyed(secret, _named(kind, reason) + detail)


@lru_cache(maxsize=1024)  # most events of a batch say the same
def _said(secret: bytes, kind: str, reason: str) -> bytes:
    return keyed(secret, _named(kind, reason))


@lru_cache(maxsize=1024)
def _named(kind: str, reason: str) -> bytes:
    return b"\x1f".join((kind.encode(), reason.encode(), b""))


def admitted_content(content: bytes, attempt: int) -> bytes:
    """The content of an `admitted` event: the attempt's number is known to the statement only."""
    return hashlib.sha256(content + pack(">i", attempt)).digest()


def head_after(previous: bytes, number: int, sequence: int, kind: str, content: bytes) -> bytes:
    """sha256(previous ‖ number ‖ sequence ‖ kind ‖ content); `previous` is empty for the first event."""
    return hashlib.sha256(previous + pack(">qi", number, sequence) + kind.encode() + content).digest()
