"""A TCP proxy that passes, stalls, refuses or cuts connections on command, also at a given word of the client's.

It stands before a database or a broker and never changes a byte.
"""

from __future__ import annotations

import asyncio
import enum
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import TracebackType
from typing import Self

from counterfoil.parts.ports import LOOPBACK

CHUNK = 65_536


class Fault(enum.Enum):
    """What the proxy does with every connection, old and new."""

    PASS = "pass"  # noqa: S105 - not a password
    STALL = "stall"  #: bytes are accepted and kept until the fault is over
    REFUSE = "refuse"  #: nobody listens: a new connection is refused, an old one is cut


class _Connection:
    """One client and the server behind it."""

    def __init__(self, proxy: FaultProxy, client: asyncio.StreamWriter) -> None:
        self.proxy, self.client = proxy, client
        self.upstream: asyncio.StreamWriter | None = None
        self.deaf = False  #: the server's answers no longer reach the client

    def cut(self) -> None:
        """Reset both ends, as a machine that vanishes does."""
        for writer in (self.client, self.upstream):
            if writer is not None:
                with suppress(OSError, RuntimeError):
                    writer.transport.abort()


class FaultProxy:
    """Listens on loopback and leads to a port on loopback. Its own thread runs it; every method can be called from any other."""

    def __init__(self, target: int, *, port: int | None = None) -> None:
        self._target = target
        self._socket = self._bound(port or 0)
        self.port: int = self._socket.getsockname()[1]
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="fault-proxy", daemon=True)
        self._fault = Fault.PASS
        self._passing = asyncio.Event()
        self._connections: set[_Connection] = set()
        self._server: asyncio.Server | None = None
        self._word: tuple[bytes, bool] | None = None
        self._word_seen = threading.Event()

    @property
    def address(self) -> str:
        """host:port for clients."""
        return f"{LOOPBACK}:{self.port}"

    @property
    def connections(self) -> int:
        """How many are open now."""
        return len(self._connections)

    def resume(self) -> None:
        """Pass everything again; what was stalled arrives."""
        self._in_loop(self._change, Fault.PASS)

    def stall(self) -> None:
        """Take every byte and deliver none: the silence of a lost network."""
        self._in_loop(self._change, Fault.STALL)

    def refuse(self) -> None:
        """Cut every connection and refuse new ones until `resume`."""
        self._in_loop(self._change, Fault.REFUSE)

    def cut(self) -> None:
        """Cut every connection now; new ones pass."""
        self._in_loop(self._cut_all)

    def cut_at(self, word: bytes, *, delivered: bool) -> threading.Event:
        """Cut the first connection whose client sends `word`, once.

        With `delivered` the server gets the bytes and answers, and only the answer is lost; else they never arrive. The event
        is set when it has happened. A word split over two reads is not seen: statements as short as COMMIT are sent whole.
        """
        self._word_seen = threading.Event()
        self._word = (word, delivered)
        return self._word_seen

    def __enter__(self) -> Self:
        self._thread.start()
        self._in_loop(self._open)
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        self._in_loop(self._change, Fault.REFUSE)
        asyncio.run_coroutine_threadsafe(self._finish(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()
        self._socket.close()

    # -- below runs in the proxy's own thread

    def _in_loop(self, act: Callable[..., object], *arguments: object) -> None:
        async def run() -> None:
            result = act(*arguments)
            if asyncio.iscoroutine(result):
                await result

        asyncio.run_coroutine_threadsafe(run(), self._loop).result(10)

    @staticmethod
    def _bound(port: int) -> socket.socket:
        bound = socket.socket()
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((LOOPBACK, port))
        return bound

    async def _open(self) -> None:
        self._passing.set()
        self._server = await asyncio.start_server(self._serve, sock=self._socket, limit=CHUNK)

    async def _change(self, fault: Fault) -> None:
        self._fault = fault
        if fault is Fault.PASS:
            self._passing.set()
            if self._server is None:
                self._socket = self._bound(self.port)
                await self._open()
        elif fault is Fault.STALL:
            self._passing.clear()
        else:
            if self._server is not None:
                self._server.close()
                self._server = None
            self._cut_all()
            self._passing.set()  # what was stalled finds its connection cut, and ends

    def _cut_all(self) -> None:
        for connection in list(self._connections):
            connection.cut()

    async def _finish(self) -> None:
        mine = asyncio.current_task()
        tasks = [task for task in asyncio.all_tasks() if task is not mine]
        await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 5)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = _Connection(self, writer)
        self._connections.add(connection)
        try:
            answers, connection.upstream = await asyncio.open_connection(LOOPBACK, self._target, limit=CHUNK)
            there = asyncio.ensure_future(self._requests(connection, reader, connection.upstream))
            back = asyncio.ensure_future(self._answers(connection, answers, writer))
            await asyncio.wait((there, back), return_when=asyncio.FIRST_COMPLETED)
            for task in (there, back):
                task.cancel()
            await asyncio.gather(there, back, return_exceptions=True)
        except OSError:
            pass  # the server refuses: so do we, below
        finally:
            self._connections.discard(connection)
            connection.cut()

    async def _requests(self, connection: _Connection, reader: asyncio.StreamReader, upstream: asyncio.StreamWriter) -> None:
        while chunk := await reader.read(CHUNK):
            await self._passing.wait()
            if self._word is not None and self._word[0] in chunk:
                (_, delivered), self._word = self._word, None
                connection.deaf = True
                if not delivered:
                    self._word_seen.set()
                    return
            upstream.write(chunk)
            await upstream.drain()

    async def _answers(self, connection: _Connection, answers: asyncio.StreamReader, client: asyncio.StreamWriter) -> None:
        while chunk := await answers.read(CHUNK):
            await self._passing.wait()
            if connection.deaf:
                self._word_seen.set()
                return
            client.write(chunk)
            await client.drain()


@contextmanager
def fault_proxy(target: int, *, port: int | None = None) -> Iterator[FaultProxy]:
    """A proxy that leads to a port on loopback."""
    with FaultProxy(target, port=port) as proxy:
        yield proxy
