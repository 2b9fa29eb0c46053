"""What an act would do to each dead letter of a plan, with the code and the contracts that are installed here: the preview and
the run ask the same.

It decides nothing itself: rules are core's. The topic of what is sent follows from the operation's type in the ledger; no header
of a record has a say.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import sha256
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import Connection

from counterfoil.core import decisions
from counterfoil.core.acts import Action
from counterfoil.core.decisions import Grounds, Move, No
from counterfoil.core.errors import Refused, Undecodable
from counterfoil.core.operation_type import Operations
from counterfoil.core.reasons import Reason
from counterfoil.core.roads import COMMAND, road_of, topic_of
from counterfoil.core.standing import Rules
from counterfoil.core.states import WAITING
from counterfoil.ledger import plans, quarantine
from counterfoil.ledger.decided import Facts
from counterfoil.ledger.moves import Locked, lock
from counterfoil.ledger.plans import Item, Plan
from counterfoil.ledger.quarantine import Kept
from counterfoil.schemas.contracts import Contracts
from counterfoil.schemas.envelope import Command, parse_command
from counterfoil.settings import Settings

#: The acts that a plan can be run for.
ACTS = (Action.REPLAY, Action.DISCARD, Action.LOOK_FIRST)


class Judged(NamedTuple):
    """One dead letter and what was decided: a move of its operation, a raw record to let go, or why neither."""

    item: Item
    facts: Facts | None
    move: Move | None
    raw: UUID | None
    refused: Reason | None
    grounds: Grounds | None = None


class Judge:
    """For one ledger with the types that are installed here. Compiles rules and contracts once."""

    def __init__(self, ledger: str, settings: Settings, operations: Operations) -> None:
        self._ledger = ledger
        self._contracts = Contracts(operations, settings.registry_lock)
        self._rules = {one.name: settings.rules_of(one) for one in operations.types}

    def judge(
        self, connection: Connection, act: Action, plan: Plan, items: Sequence[Item], *, held: bool
    ) -> tuple[Locked, list[Judged]]:
        """In the order of the items. `held`: the operations are locked, in the order of their numbers."""
        numbers = [item.number for item in items if item.number is not None]
        locked = lock(connection, numbers) if held else plans.look(connection, numbers)
        values = plans.current_values(connection, numbers) if act is Action.REPLAY and numbers else {}
        raws = [item.raw for item in items if item.raw is not None]
        kept = quarantine.raw_records(connection, raws) if raws else {}
        judged = []
        for item in items:
            if item.number is not None:
                judged.append(self._operation(act, plan, item, locked, values.get(item.number)))
            else:
                judged.append(self._record(connection, act, item, None if item.raw is None else kept.get(item.raw)))
        return locked, judged

    def topic(self, type_name: str) -> str:
        """Where a replayed operation of this type goes, whatever any header says."""
        return topic_of(self._ledger, road_of(COMMAND, type_name))

    def doubling(self, type_name: str) -> str | None:
        """What a repeat of this type could double, in words; None where the type is not installed."""
        rules = self._rules.get(type_name)
        return None if rules is None else decisions.doubling(rules)

    def rules(self, type_name: str) -> Rules | None:
        """None where the type is not installed here."""
        return self._rules.get(type_name)

    def _operation(self, act: Action, plan: Plan, item: Item, locked: Locked, value: bytes | None) -> Judged:
        number = item.number
        assert number is not None
        standing, facts = locked.standings.get(number), locked.facts.get(number)
        if standing is None or facts is None:
            return Judged(item, None, None, None, Reason.UNKNOWN_OPERATION)
        grounds = Grounds.FIXED if standing.revision > item.revision else plan.rests_on
        decided: Move | No
        rules = self._rules.get(facts.type)
        if act is Action.DISCARD:
            decided = decisions.discard(standing)
        elif rules is None:
            decided = No(Reason.UNKNOWN_TYPE)
        elif act is Action.LOOK_FIRST:
            decided = decisions.look_first(rules, standing)
        else:
            decided = decisions.replay(rules, standing, grounds, replays=item.replays, now=locked.now)
            wrong = self._unreadable(facts.type, value) if isinstance(decided, Move) else None
            decided = decided if wrong is None else No(wrong)
        if isinstance(decided, Move) and standing.sequence != item.sequence:
            decided = No(Reason.SOMEBODY_WAS_FIRST)
        if isinstance(decided, No):
            return Judged(item, facts, None, None, decided.reason)
        return Judged(item, facts, decided, None, None, grounds)

    def _unreadable(self, type_name: str, value: bytes | None) -> Reason | None:
        try:
            self._contracts.of(type_name).decode(value)
        except (Undecodable, Refused) as error:
            return error.reason
        return None

    def _record(self, connection: Connection, act: Action, item: Item, kept: Kept | None) -> Judged:
        """A raw record: given up as it is, or let go where it can be read now and is its operation's own."""
        if kept is None:
            return Judged(item, None, None, None, Reason.UNKNOWN_CAUSE)
        if act is Action.DISCARD:
            return Judged(item, None, None, kept.id, None)
        if act is Action.LOOK_FIRST:
            return Judged(item, None, None, None, Reason.UNKNOWN_OPERATION_RECORD)
        reason = self._unmatched(connection, kept)
        return Judged(item, None, None, None if reason else kept.id, reason)

    def _unmatched(self, connection: Connection, kept: Kept) -> Reason | None:
        """Why a raw record cannot be replayed; None: its operation waits, and these are its bytes."""
        claimed = self._claimed(kept)
        if isinstance(claimed, Reason):
            return claimed
        there = plans.look(connection, [claimed.number])
        facts, standing = there.facts.get(claimed.number), there.standings.get(claimed.number)
        if facts is None or standing is None or facts.operation_id != claimed.operation_id or facts.type != kept.type:
            return Reason.UNKNOWN_OPERATION_RECORD
        if not plans.has_bytes(connection, claimed.number, sha256(kept.value or b"").digest()):
            return Reason.DIGEST_MISMATCH
        return None if standing.state in WAITING else Reason.ASK_ITS_OPERATION

    def _claimed(self, kept: Kept) -> Command | Reason:
        try:
            claimed = parse_command(kept.headers)
            if claimed.type != kept.type:
                return Reason.UNKNOWN_TYPE
            self._contracts.of(claimed.type).decode(kept.value)
        except (Undecodable, Refused) as error:
            return error.reason
        return claimed


def preview(connection: Connection, judge: Judge, plan: Plan, parts: Iterable[Sequence[Item]]) -> dict[str, Any]:
    """What a replay would send, by type and topic, and what it would refuse, by reason, over all waiting items."""
    send: dict[str, int] = {}
    refused: dict[str, int] = {}
    for items in parts:
        for one in judge.judge(connection, Action.REPLAY, plan, items, held=False)[1]:
            if one.refused is not None:
                refused[one.refused.value] = refused.get(one.refused.value, 0) + 1
            else:
                name = one.facts.type if one.facts is not None else ""
                send[name] = send.get(name, 0) + 1
    types = [
        {"type": name or None, "count": count, "topic": judge.topic(name) if name else None, "risk": judge.doubling(name)}
        for name, count in sorted(send.items())
    ]
    return {"send": types, "refused": dict(sorted(refused.items(), key=lambda one: -one[1]))}
