"""What the fake sink holds: rows, remembered keys, versions. Pure: time is handed in, and nothing here misbehaves."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from counterfoil.sinks.journal import Entry, Fate, content_digest


@dataclass(frozen=True)
class Nature:
    """What this outside system promises and keeps."""

    keyed: bool = True  #: it remembers idempotency keys
    key_horizon: float | None = None  #: seconds after which it forgets one; None: never
    read_lag: float = 0.0  #: seconds for which an applied write cannot be read
    version_guard: bool = False  #: it refuses a version that is not newer than the entity's


@dataclass(frozen=True)
class Command:
    """One write as it was received."""

    request: str
    entity: str
    fields: Mapping[str, Any]
    append: bool  #: a new row; else the entity's one row is replaced
    key: str | None = None
    operation: str | None = None
    version: int | None = None


@dataclass(frozen=True)
class Row:
    """A row at one moment; an entity's later rows of the same id replace it."""

    id: str
    entity: str
    fields: Mapping[str, Any]
    version: int | None
    key: str | None
    operation: str | None
    at: float

    def shown(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("id", "entity", "fields", "version", "key", "operation")}


@dataclass(frozen=True)
class Taken:
    """What became of a command, and its answer."""

    fate: Fate
    status: int
    body: Mapping[str, Any]
    row: str | None = None
    changed: bool = False


@dataclass(frozen=True)
class _Remembered:
    digest: str
    taken: Taken
    at: float


class Content:
    """The state; `take` is the only way to change it."""

    def __init__(self, nature: Nature) -> None:
        self.nature = nature
        self._history: dict[str, list[Row]] = defaultdict(list)
        self._by_key: dict[str, list[tuple[str, str]]] = defaultdict(list)
        self._entity_of: dict[str, str] = {}
        self._keys: dict[str, _Remembered] = {}

    def remembered(self, command: Command, now: float) -> Taken | None:
        """The stored answer of this key, if it is known and still enforced."""
        known = self._keys.get(command.key) if command.key is not None and self.nature.keyed else None
        if known is None:
            return None
        if self.nature.key_horizon is not None and now >= known.at + self.nature.key_horizon:
            del self._keys[command.key or ""]
            return None
        if known.digest != content_digest(command.fields):
            return Taken(Fate.REFUSED, 422, {"code": "key_reused"})
        return replace(known.taken, fate=Fate.REPLAYED, changed=False)

    def take(self, command: Command, now: float, *, stored: Taken | None = None) -> Taken:
        """Apply a command once a key; `stored` is remembered for the key in place of the true answer."""
        if (known := self.remembered(command, now)) is not None:
            return known
        latest = self._history[command.entity][-1] if self._history[command.entity] else None
        if self.nature.version_guard and not _newer(command, latest):
            return Taken(Fate.REFUSED, 412, {"code": "version_not_newer", "version": latest.version if latest else None})
        changed = command.append or latest is None or (latest.fields, latest.version) != (command.fields, command.version)
        place = f"{command.entity}.{len(self._history[command.entity]) + 1}" if command.append else command.entity
        self._keep(Row(place, command.entity, command.fields, command.version, command.key, command.operation, now))
        taken = Taken(Fate.APPLIED, 200, {"id": place, "version": command.version}, place, changed)
        self.remember(command, now, stored or taken)
        return taken

    def remember(self, command: Command, now: float, taken: Taken) -> None:
        """Give every repeat of this key the same answer."""
        if command.key is not None and self.nature.keyed:
            self._keys[command.key] = _Remembered(content_digest(command.fields), taken, now)

    def by_key(self, key: str, now: float) -> list[Row]:
        return self._readable(self._by_key.get(key, ()), now)

    def by_entity(self, entity: str, now: float) -> list[Row]:
        places = dict.fromkeys((row.id, entity) for row in self._history.get(entity, ()))
        return self._readable(places, now)

    def by_id(self, place: str, now: float) -> list[Row]:
        return self._readable([(place, self._entity_of[place])] if place in self._entity_of else (), now)

    def restore(self, entries: Iterable[Entry]) -> None:
        """What a journal says was applied, after a restart."""
        for entry in entries:
            if entry.applied and entry.row is not None:
                row = Row(entry.row, entry.entity, entry.fields or {}, entry.version, entry.key, entry.operation, entry.at)
                self._keep(row)
                if entry.key is not None:
                    answer = Taken(Fate.APPLIED, 200, {"id": entry.row, "version": entry.version}, entry.row)
                    self._keys[entry.key] = _Remembered(entry.digest, answer, entry.at)

    def _keep(self, row: Row) -> None:
        self._history[row.entity].append(row)
        self._entity_of[row.id] = row.entity
        if row.key is not None and (row.id, row.entity) not in self._by_key[row.key]:
            self._by_key[row.key].append((row.id, row.entity))

    def _readable(self, places: Iterable[tuple[str, str]], now: float) -> list[Row]:
        found: list[Row] = []
        for place, entity in places:
            readable = [row for row in self._history[entity] if row.id == place and row.at + self.nature.read_lag <= now]
            found += readable[-1:]
        return found


def _newer(command: Command, latest: Row | None) -> bool:
    if command.version is None:
        return False
    return latest is None or latest.version is None or command.version > latest.version
