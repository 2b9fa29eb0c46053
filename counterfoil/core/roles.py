"""The four roles of people: one list of what each may do, for the commands, for the HTTP application and for the database.

A role is a database role of the ledger; whoever is a member of it has it. Pure: the ledger makes the roles and grants from here.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final, NamedTuple

from counterfoil.core.acts import Action


class Role(StrEnum):
    """A role and what it is for, from the least; each has the rights of those before it."""

    sentence: str

    def __new__(cls, code: str, sentence: str) -> Role:
        member = str.__new__(cls, code)
        member._value_ = code
        member.sentence = sentence
        return member

    READER = "reader", "Sees operations, causes, counts and acts; no byte of a payload"
    OPERATOR = "operator", "Sees payloads masked, raw ones as an act; cancels, plans, replays, discards, pauses, releases"
    APPROVER = "approver", "Corrects payloads, and insists where nothing has changed"
    ADMINISTRATOR = "administrator", "Everything that the ledger's owner may do with its rows"

    def covers(self, other: Role) -> bool:
        """Whether this role has the other's rights."""
        order = list(Role)
        return order.index(self) >= order.index(other)


#: Which act needs which role. Every act is here.
ACTS: Final[Mapping[Action, Role]] = {
    Action.CANCEL: Role.OPERATOR,
    Action.PAUSE: Role.OPERATOR,
    Action.RESUME: Role.OPERATOR,
    Action.LIMIT: Role.OPERATOR,
    Action.RELEASE: Role.OPERATOR,
    Action.REVEAL: Role.OPERATOR,
    Action.EXPORT: Role.OPERATOR,
    Action.FIX: Role.APPROVER,
    Action.PLAN: Role.OPERATOR,
    Action.REPLAY: Role.OPERATOR,
    Action.STOP: Role.OPERATOR,
    Action.LOOK_FIRST: Role.OPERATOR,
    Action.DISCARD: Role.OPERATOR,
}
#: To replay what neither the payload nor the consumer has changed for.
TO_FORCE: Final = Role.APPROVER
#: Which command reads what, and the role that it needs. Commands that are not here need the right to connect alone.
READS: Final[Mapping[str, Role]] = {
    "operations list": Role.READER,
    "operations show": Role.READER,
    "dlq list": Role.READER,
    "dlq show": Role.READER,
    "dlq acts": Role.READER,
    "held list": Role.READER,
    "held show": Role.READER,
    "payload, masked": Role.OPERATOR,
}


class Grant(NamedTuple):
    """Privileges on one table of the ledger; `columns` empty: on all of them."""

    privileges: str
    table: str
    columns: tuple[str, ...] = ()


_OPEN = (
    "setting", "operation", "state", "event", "published", "worker", "shard", "acknowledged", "act", "dead_letter", "plan",
    "plan_item", "decoding", "entity", "entity_tail", "outage", "pause", "sink", "sink_share",
)  # fmt: skip
#: Tables that hold bytes, without the columns that do.
_BYTES = {
    "payload": ("number", "revision", "value_hash", "created_at"),
    "outbox": ("shard", "id", "kind", "type", "number", "operation_id", "revision", "generation", "traceparent", "created_at"),
    "refused": (
        "outbox_id", "kind", "type", "number", "operation_id", "revision", "traceparent", "created_at", "reason", "size", "at",
    ),
    "raw_record": (
        "id", "status", "reason", "type", "number", "topic", "partition", "record_offset", "record_time", "due_at", "at",
    ),
}  # fmt: skip
#: What each role is granted beside what the roles before it have.
GRANTS: Final[Mapping[Role, tuple[Grant, ...]]] = {
    Role.READER: (
        *(Grant("SELECT", table) for table in _OPEN),
        *(Grant("SELECT", table, columns) for table, columns in _BYTES.items()),
        Grant("SELECT", "digest_secret", ("id", "created_at")),
    ),
    Role.OPERATOR: (
        *(Grant("SELECT", table) for table in (*_BYTES, "digest_secret")),
        *(Grant("INSERT", table) for table in ("event", "outbox", "act", "plan", "plan_item", "pause", "sink", "entity")),
        *(Grant("UPDATE", table) for table in ("state", "raw_record", "plan", "plan_item", "pause", "sink", "entity")),
        Grant("DELETE", "pause"),
    ),
    Role.APPROVER: (Grant("INSERT", "payload"),),
    Role.ADMINISTRATOR: (Grant("SELECT, INSERT, UPDATE, DELETE", "ALL TABLES"),),
}


def role_name(ledger: str, role: Role) -> str:
    """The database role's name: at most 57 of the 63 characters that PostgreSQL keeps."""
    return f"cf_{ledger}_{role.value}"
