"""Starts and steers the fake sink's process. It reads the journal from its file and never asks the process for it."""

import http.client
import os
import selectors
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import orjson

from counterfoil.sinks.fake.content import Nature
from counterfoil.sinks.fake.plan import Plan
from counterfoil.sinks.journal import Entry, Journal, doubled, effects_per_operation

_START_WITHIN = 20.0  # seconds
_STOP_WITHIN = 5.0


class FakeSink:
    """A running fake sink. `restart` keeps its address and content."""

    def __init__(self, folder: Path, plan: Plan | None = None, nature: Nature | None = None) -> None:
        self.journal = Journal(folder / "journal.jsonl")
        self._plan, self._nature = plan or Plan(), nature or Nature()
        self._process: subprocess.Popen[bytes] | None = None
        self.url = self._start(0)

    @classmethod
    @contextmanager
    def started(cls, folder: Path, plan: Plan | None = None, nature: Nature | None = None) -> Iterator["FakeSink"]:
        """A fake sink for the time of a block; its journal stays in `folder`."""
        sink = cls(folder, plan, nature)
        try:
            yield sink
        finally:
            sink.stop()

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def entries(self) -> list[Entry]:
        return self.journal.entries()

    def effects_per_operation(self) -> Counter[str]:
        return effects_per_operation(self.entries())

    def doubled(self) -> int:
        return doubled(self.entries())

    def met(self) -> Counter[str]:
        """How many requests met each behaviour: a run in which a planned fault never happened proves nothing."""
        return Counter(entry.behaviour for entry in self.entries())

    def plan(self, plan: Plan) -> None:
        """Another plan from now on; calls are counted on."""
        self._plan = plan
        self._control("POST", "/control/plan", plan.dumps())

    def advance(self, seconds: float) -> None:
        """Move the sink's clock: keys expire, written rows become readable."""
        self._control("POST", "/control/advance", orjson.dumps({"seconds": seconds}))

    def held(self) -> list[str]:
        """Entities of the writes that have not landed."""
        entities: list[str] = self._control("GET", "/control/held")["held"]
        return entities

    def land(self, entity: str | None = None) -> int:
        """Let the writes that were held back be applied now; answers how many."""
        return int(self._control("POST", "/control/land", orjson.dumps({"entity": entity}))["landed"])

    def answer_reads(self, status: int, body: str = "", content_type: str = "application/json") -> None:
        """Answer every read like this, until `reads_work`: an outage, a login page, a 404 that means "no permission"."""
        self._control("POST", "/control/reads", orjson.dumps({"status": status, "body": body, "content_type": content_type}))

    def reads_work(self) -> None:
        self._control("POST", "/control/reads", b"null")

    def stop(self) -> None:
        """End the process by its own pid; what it has not landed is lost."""
        process, self._process = self._process, None
        if process is None:
            return
        process.terminate()
        try:
            process.wait(_STOP_WITHIN)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()

    def restart(self) -> None:
        """Up again at the same address with what the journal says was applied; stored errors and call counts are forgotten."""
        self.stop()
        self._start(urlsplit(self.url).port or 0)

    def _start(self, port: int) -> str:
        command = [sys.executable, "-m", "counterfoil.sinks.fake", "--journal", str(self.journal.path), "--port", str(port)]
        command += ["--plan", self._plan.dumps(), "--nature", orjson.dumps(asdict(self._nature)).decode()]
        # The process ends with its standard input, which this process holds.
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=_environment())
        self._process = process
        assert process.stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            line = process.stdout.readline() if selector.select(_START_WITHIN) else b""
        if not line:
            self.stop()
            raise RuntimeError("the fake sink did not start")
        return line.decode().strip()

    def _control(self, method: str, path: str, body: str | bytes | None = None) -> Mapping[str, Any]:
        parts = urlsplit(self.url)
        connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=10)
        try:
            connection.request(method, path, body)
            answer = connection.getresponse()
            data = answer.read()
            if answer.status != 200:
                raise RuntimeError(f"the fake sink answered {answer.status} to {path}")
            read: Mapping[str, Any] = orjson.loads(data)
            return read
        finally:
            connection.close()


def _environment() -> dict[str, str]:
    """A failpoint meant for a worker must not hit the outside system."""
    return {name: value for name, value in os.environ.items() if not name.startswith("COUNTERFOIL_FAILPOINTS")}
