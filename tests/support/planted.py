"""The secrets that tests plant in payloads, keys, errors and passwords, and where they must never appear (S18).

Every planted text holds MARKER. After each test the captured output and logs, the output of the processes it started, the
database's log, the history in its ledger and the headers on its topics are searched for it.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import psycopg
from psycopg import sql

MARKER = f"planted{secrets.token_hex(8)}"

#: Columns that people see. Bytes of payloads and raw records are the data itself; keys and entities are names.
HISTORY: Mapping[str, tuple[str, ...]] = {
    "state": ("reason", "remote_id"),
    "event": ("kind", "reason", "detail"),
    "outbox": ("headers", "traceparent"),
    "refused": ("headers", "reason"),
    "raw_record": ("reason",),
    "worker": ("name", "capable"),
    "act": ("action", "reason", "result"),
}


@dataclass
class Planted:
    """One test's secrets, and the places that are searched when it ends."""

    payload: str = f"{MARKER}-payload"
    key: str = f"{MARKER}-key"
    error: str = f"{MARKER}-error"
    password: str = f"{MARKER}-password"
    leaks: list[str] = field(default_factory=list)
    expected: set[str] = field(default_factory=set)  #: where the guard's own tests leak on purpose
    _files: dict[Path, tuple[str, int]] = field(default_factory=dict)

    def watch(self, path: Path, name: str) -> None:
        """Search what this file gains from now on."""
        self._files.setdefault(path, (name, path.stat().st_size if path.exists() else 0))

    def saw(self, place: str, texts: Iterable[str | bytes | None]) -> None:
        """Search these texts now; the place is named if the test is failed, never the text."""
        if any(holds_secret(text) for text in texts):
            self.leaks.append(place)

    def verdict(self, *, ended: bool) -> str | None:
        """Why the test fails, if it does; once it has ended, an expected leak that was not found is a reason too."""
        found = set(self.leaks)
        if found - self.expected:
            return f"S18: a planted secret is in {', '.join(sorted(found - self.expected))}"
        if ended and self.expected - found:
            return f"S18: the guard did not find the secret in {', '.join(sorted(self.expected - found))}"
        return None

    def search_files(self) -> None:
        """Search the watched files."""
        for path, (name, start) in self._files.items():
            if path.exists():
                with path.open("rb") as log:
                    log.seek(start)
                    self.saw(name, [log.read()])

    def search_history(self, url: str) -> None:
        """Search the readable columns of a ledger."""
        with psycopg.connect(url) as connection:
            for table, columns in HISTORY.items():
                seen = sql.SQL("concat_ws(' ', {})").format(sql.SQL(", ").join(map(sql.Identifier, columns)))
                query = sql.SQL("SELECT EXISTS (SELECT FROM counterfoil.{} WHERE {} LIKE %s)").format(sql.Identifier(table), seen)
                found = connection.execute(query, (f"%{MARKER}%",)).fetchone()
                if found is not None and found[0]:
                    self.leaks.append(f"the ledger's table {table}")


def holds_secret(text: str | bytes | None) -> bool:
    """Whether a planted secret is in the text."""
    if text is None:
        return False
    return MARKER in text if isinstance(text, str) else MARKER.encode() in text
