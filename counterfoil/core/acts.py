"""What a person can do to a ledger: the closed list of acts, and the one text that the hash of each covers.

An act is who (the database login), when, what, why and with which result. Pure; the ledger writes it. Neither a reason nor a
detail ever holds a payload or a secret.
"""

from __future__ import annotations

import hashlib
from enum import StrEnum
from struct import pack

from counterfoil.core.keyed import keyed


class Action(StrEnum):
    """A code and a sentence for people. Its `value` is the code, which the ledger keeps for ever."""

    sentence: str

    def __new__(cls, code: str, sentence: str) -> Action:
        member = str.__new__(cls, code)
        member._value_ = code
        member.sentence = sentence
        return member

    CANCEL = "cancel", "Cancelled an operation, or asked for it"
    PAUSE = "pause", "Paused an operation type or a sink"
    RESUME = "resume", "Resumed an operation type or a sink"
    LIMIT = "limit", "Set a sink's limits"
    RELEASE = "release", "Released held records"
    REVEAL = "reveal", "Looked at raw bytes that are masked for others"
    EXPORT = "export", "Wrote a list of dead letters to a file, masked"
    FIX = "fix", "Gave an operation a new revision of its payload"
    PLAN = "plan", "Froze a selection of dead letters"
    REPLAY = "replay", "Let a plan's dead letters run again"
    STOP = "stop", "Stopped a plan"
    LOOK_FIRST = "look_first", "Asked for a probe before anything else"
    DISCARD = "discard", "Gave up a dead letter for good"


def act_content(secret: bytes, said: bytes) -> bytes:
    """The keyed digest (32 bytes) of what an act says: its time, actor, action, subject, reason, result and detail."""
    return keyed(secret, said)


def act_head(previous: bytes, act: int, content: bytes) -> bytes:
    """The head of the acts' chain after this one; `previous` is empty for the first."""
    return hashlib.sha256(previous + pack(">q", act) + content).digest()
