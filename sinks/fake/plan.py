"""How the fake sink misbehaves, decided by request and call number: the same plan and the same calls give the same faults."""

import zlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

import orjson


class Behaviour(StrEnum):
    """What happens to one write."""

    NORMAL = "normal"
    ANSWER_LOST = "answer_lost"  #: applied, and the connection cut
    CUT = "cut"  #: cut before it is applied
    ERROR_APPLIED = "error_applied"  #: applied, and answered 500; a repeat of the key gets the true answer
    ERROR_STORED = "error_stored"  #: not applied; 500, which every repeat of the key gets again
    ERROR_STORED_APPLIED = "error_stored_applied"  #: applied; 500, which every repeat of the key gets again
    KEY_IN_USE = "key_in_use"  #: 409, not applied
    RATE_LIMIT = "rate_limit"  #: 429 with Retry-After, not applied
    SLOW = "slow"  #: applied and answered after `seconds`; the key is in use meanwhile
    LATE = "late"  #: no answer; applied when `FakeSink.land` says so, if ever
    REJECT = "reject"  #: 422, not applied


@dataclass(frozen=True)
class Rule:
    """One behaviour for the writes that fit every field that is given."""

    behaviour: Behaviour
    key: str | None = None
    entity: str | None = None
    operation: str | None = None
    calls: tuple[int, ...] = ()  #: which calls of that key (of the entity, where there is none), from 1; empty: all
    #: SLOW: how long it takes; RATE_LIMIT: Retry-After; LATE: the longest that the connection is held open without an answer
    seconds: float = 1.0

    def fits(self, key: str | None, entity: str, operation: str | None, call: int) -> bool:
        return (
            (not self.calls or call in self.calls)
            and self.key in (None, key)
            and self.entity in (None, entity)
            and self.operation in (None, operation)
        )


_NORMAL = Rule(Behaviour.NORMAL)


@dataclass(frozen=True)
class Plan:
    """Rules, the first that fits wins; below them seeded shares of all writes."""

    rules: tuple[Rule, ...] = ()
    shares: Mapping[Behaviour, float] = field(default_factory=dict)  #: of the writes, together at most 1
    shared_calls: int = 1  #: only the first calls of a key meet the shares, so that every operation can end
    seconds: float = 1.0  #: as in Rule, for the shares
    seed: int = 0

    def rule(self, key: str | None, entity: str, operation: str | None, call: int) -> Rule:
        """What the `call`-th write of this key meets."""
        for rule in self.rules:
            if rule.fits(key, entity, operation, call):
                return rule
        if call <= self.shared_calls:
            drawn = zlib.crc32(f"{self.seed}:{entity}:{key}:{call}".encode()) / 2**32
            for behaviour, share in self.shares.items():
                if drawn < share:
                    return Rule(behaviour, seconds=self.seconds)
                drawn -= share
        return _NORMAL

    def dumps(self) -> str:
        return orjson.dumps({**asdict(self), "shares": {b.value: share for b, share in self.shares.items()}}).decode()

    @classmethod
    def loads(cls, text: str | bytes) -> "Plan":
        read: dict[str, Any] = orjson.loads(text)
        rules = tuple(
            Rule(**{**rule, "behaviour": Behaviour(rule["behaviour"]), "calls": tuple(rule["calls"])}) for rule in read["rules"]
        )
        shares = {Behaviour(name): share for name, share in read["shares"].items()}
        return cls(**{**read, "rules": rules, "shares": shares})
