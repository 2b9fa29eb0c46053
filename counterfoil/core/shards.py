"""Which of the outbox's shards a key belongs to. Fixed for ever: rows of one key stay with one owner, in order."""

from __future__ import annotations

from typing import Final
from zlib import crc32

SHARDS: Final = 64


def shard(key: bytes) -> int:
    """A number from 0 to 63."""
    return crc32(key) & (SHARDS - 1)
