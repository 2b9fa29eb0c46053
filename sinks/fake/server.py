"""The fake sink's server: one process, HTTP on loopback, every write journalled before it is answered.

Run as `python -m counterfoil.sinks.fake`; it ends when its standard input does, so that it never outlives who started it.
"""

import argparse
import asyncio
import os
import signal
import sys
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from uuid import uuid4

import orjson
from aiohttp import web

from counterfoil.sinks.fake.content import Command, Content, Nature, Taken
from counterfoil.sinks.fake.plan import Behaviour, Plan, Rule
from counterfoil.sinks.journal import Entry, Fate, Journal, content_digest

_STORED_ERROR = Taken(Fate.REPLAYED, 500, {"code": "internal"})


@dataclass
class _Held:
    """A write that has not landed."""

    command: Command
    landed: asyncio.Event = field(default_factory=asyncio.Event)


class Server:
    """Routes and what they share; the loop is its lock."""

    def __init__(self, journal: Journal, plan: Plan, nature: Nature) -> None:
        self._journal, self._plan, self._content = journal, plan, Content(nature)
        self._content.restore(journal.entries())
        self._advanced = 0.0
        self._calls: Counter[str] = Counter()
        self._in_use: set[str] = set()
        self._held: list[_Held] = []
        self._reads: dict[str, str | int] | None = None

    def application(self) -> web.Application:
        application = web.Application()
        application.add_routes(
            [
                web.post("/rows", self.append),
                web.put("/entities/{entity}", self.replace),
                web.get("/rows", self.search),
                web.get("/rows/{id}", self.by_id),
                web.post("/control/plan", self.set_plan),
                web.post("/control/advance", self.advance),
                web.post("/control/land", self.land),
                web.post("/control/reads", self.set_reads),
                web.get("/control/held", self.held),
            ]
        )
        return application

    # -- writes

    async def append(self, request: web.Request) -> web.StreamResponse:
        return await self._write(request, None)

    async def replace(self, request: web.Request) -> web.StreamResponse:
        return await self._write(request, request.match_info["entity"])

    async def _write(self, request: web.Request, entity: str | None) -> web.StreamResponse:
        try:
            read = orjson.loads(await request.read())
            command = Command(
                request=uuid4().hex,
                entity=read["entity"] if entity is None else entity,
                fields=read["fields"],
                append=entity is None,
                key=request.headers.get("Idempotency-Key"),
                operation=request.headers.get("Counterfoil-Operation"),
                version=read.get("version"),
            )
        except (orjson.JSONDecodeError, KeyError, TypeError, ConnectionResetError):  # or it did not come whole
            return _answer(400, {"code": "not_a_write"})
        counted = command.key or command.entity
        self._calls[counted] += 1
        rule = self._plan.rule(command.key, command.entity, command.operation, self._calls[counted])
        if command.key in self._in_use:
            self._note(command, Taken(Fate.REFUSED, 409, {}), rule)
            return _answer(409, {"code": "key_in_use"})
        return await self._behave(request, command, rule)

    async def _behave(self, request: web.Request, command: Command, rule: Rule) -> web.StreamResponse:
        match rule.behaviour:
            case Behaviour.ANSWER_LOST:
                self._take(command, rule)
                return _cut(request)
            case Behaviour.CUT:
                self._note(command, Taken(Fate.DROPPED, 0, {}), rule)
                return _cut(request)
            case Behaviour.ERROR_APPLIED:
                self._take(command, rule)
                return _answer(500, {"code": "internal"})
            case Behaviour.ERROR_STORED:
                return self._refuse(command, rule, 500, "internal", stored=True)
            case Behaviour.ERROR_STORED_APPLIED:
                self._take(command, rule, stored=_STORED_ERROR)
                return _answer(500, {"code": "internal"})
            case Behaviour.KEY_IN_USE:
                return self._refuse(command, rule, 409, "key_in_use")
            case Behaviour.RATE_LIMIT:
                return self._refuse(command, rule, 429, "rate_limit", retry_after=rule.seconds)
            case Behaviour.REJECT:
                return self._refuse(command, rule, 422, "rejected")
            case Behaviour.SLOW:
                return await self._slowly(command, rule)
            case Behaviour.LATE:
                return await self._hold(request, command, rule)
        taken = self._take(command, rule)
        return _answer(taken.status, taken.body)

    async def _slowly(self, command: Command, rule: Rule) -> web.StreamResponse:
        key = command.key or command.request
        self._in_use.add(key)
        try:
            await asyncio.sleep(rule.seconds)  # being slow is what was asked for
            taken = self._take(command, rule)
        finally:
            self._in_use.discard(key)
        return _answer(taken.status, taken.body)

    async def _hold(self, request: web.Request, command: Command, rule: Rule) -> web.StreamResponse:
        held = _Held(command)
        self._held.append(held)
        self._note(command, Taken(Fate.HELD, 0, {}), rule)
        with suppress(TimeoutError):  # then the connection ends, and the write still waits to land
            await asyncio.wait_for(held.landed.wait(), rule.seconds)
        return _cut(request)

    def _take(self, command: Command, rule: Rule, stored: Taken | None = None) -> Taken:
        taken = self._content.take(command, self._now(), stored=stored)
        self._note(command, taken, rule)
        return taken

    def _refuse(
        self, command: Command, rule: Rule, status: int, code: str, *, stored: bool = False, retry_after: float | None = None
    ) -> web.StreamResponse:
        """Not applied; but a key that was answered before gets its first answer, whatever is planned."""
        known = self._content.remembered(command, self._now())
        taken = known or Taken(Fate.REFUSED, status, {"code": code})
        if stored and known is None:
            self._content.remember(command, self._now(), _STORED_ERROR)
        if known is not None and status in (409, 429):
            taken = Taken(Fate.REFUSED, status, {"code": code})  # these are said before the key is looked up
        self._note(command, taken, rule)
        headers = {"Retry-After": f"{retry_after:.0f}"} if retry_after is not None else {}
        return _answer(taken.status, taken.body, headers)

    def _note(self, command: Command, taken: Taken, rule: Rule) -> None:
        self._journal.append(
            Entry(
                request=command.request,
                fate=taken.fate,
                entity=command.entity,
                digest=content_digest(command.fields),
                at=self._now(),
                key=command.key,
                operation=command.operation,
                version=command.version,
                row=taken.row,
                fields=command.fields,
                changed_content=taken.changed,
                behaviour=rule.behaviour.value,
            )
        )

    # -- reads

    async def search(self, request: web.Request) -> web.StreamResponse:
        if self._reads is not None:
            return self._planned_read()
        key, entity = request.query.get("key"), request.query.get("entity")
        if key is not None:
            return _answer(200, [row.shown() for row in self._content.by_key(key, self._now())])
        return _answer(200, [row.shown() for row in self._content.by_entity(entity or "", self._now())])

    async def by_id(self, request: web.Request) -> web.StreamResponse:
        if self._reads is not None:
            return self._planned_read()
        found = self._content.by_id(request.match_info["id"], self._now())
        return _answer(200, found[0].shown()) if found else _answer(404, {"code": "no_such_row"})

    def _planned_read(self) -> web.Response:
        reads = self._reads or {}
        headers = {"Content-Type": str(reads["content_type"]), "Location": "/elsewhere"}
        return web.Response(status=int(reads["status"]), body=str(reads["body"]).encode(), headers=headers)

    # -- control

    async def set_plan(self, request: web.Request) -> web.StreamResponse:
        self._plan = Plan.loads(await request.read())
        return _answer(200, {})

    async def set_reads(self, request: web.Request) -> web.StreamResponse:
        self._reads = orjson.loads(await request.read())
        return _answer(200, {})

    async def advance(self, request: web.Request) -> web.StreamResponse:
        self._advanced += orjson.loads(await request.read())["seconds"]
        return _answer(200, {})

    async def held(self, request: web.Request) -> web.StreamResponse:
        return _answer(200, {"held": [one.command.entity for one in self._held]})

    async def land(self, request: web.Request) -> web.StreamResponse:
        """Apply the writes that were held back, of one entity or of all, as if they arrived now."""
        entity = orjson.loads(await request.read())["entity"]
        landing = [one for one in self._held if entity in (None, one.command.entity)]
        self._held = [one for one in self._held if one not in landing]
        for one in landing:
            self._take(one.command, Rule(Behaviour.LATE))
            one.landed.set()
        return _answer(200, {"landed": len(landing)})

    def _now(self) -> float:
        return time.time() + self._advanced


def _answer(status: int, body: object, headers: dict[str, str] | None = None) -> web.Response:
    return web.Response(status=status, body=orjson.dumps(body), content_type="application/json", headers=headers)


def _cut(request: web.Request) -> web.Response:
    if request.transport is not None:
        request.transport.abort()
    return web.Response(status=500)  # nobody is there to read it


async def _serve(server: Server, port: int) -> None:
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, stopped.set)
    loop.add_signal_handler(signal.SIGINT, stopped.set)
    loop.add_reader(sys.stdin.fileno(), lambda: None if os.read(sys.stdin.fileno(), 1024) else stopped.set())
    runner = web.AppRunner(server.application(), access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", port)
    await site.start()
    _, bound = runner.addresses[0][:2]
    sys.stdout.write(f"http://127.0.0.1:{bound}\n")
    sys.stdout.flush()
    await stopped.wait()
    loop.remove_reader(sys.stdin.fileno())
    await runner.cleanup()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m counterfoil.sinks.fake")
    parser.add_argument("--journal", type=Path, required=True)
    parser.add_argument("--plan", default=Plan().dumps())
    parser.add_argument("--nature", default="{}")
    parser.add_argument("--port", type=int, default=0)
    chosen = parser.parse_args()
    nature = replace(Nature(), **orjson.loads(chosen.nature))
    asyncio.run(_serve(Server(Journal(chosen.journal), Plan.loads(chosen.plan), nature), chosen.port))
