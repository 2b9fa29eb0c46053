"""A sink behind HTTP and JSON: one request an attempt, under our idempotency key; probes by key and by id.

What may have reached the system is uncertain, and only what is known not to have is temporary. It never follows a redirect,
never sends a request twice by itself, reads no more of an answer than a limit, and lets no text of an answer into an error.
"""

import asyncio
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar
from urllib.parse import urlsplit

import aiohttp
import orjson

from counterfoil.core.errors import CounterfoilError, DeclarationError, Temporary, Uncertain
from counterfoil.core.records import Absent, Asked, Attempt, Expected, Found, Observation, Receipt, Several, Target, Unknown
from counterfoil.core.sink import Sink
from counterfoil.sinks.answers import Answers

P = TypeVar("P")
S = TypeVar("S")

#: What a reader of somebody else's JSON raises when it is not the JSON that was meant.
_UNFIT = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, CounterfoilError)
#: Share of the time-out in which a connection must be there: later than that it is temporary, since nothing was sent.
_CONNECT_SHARE = 0.8


@dataclass(frozen=True)
class Write(Generic[P]):
    """The request of the effect, and what its answer says."""

    path: Callable[[P], str]
    body: Callable[[P, Attempt], Any]  #: becomes JSON
    receipt: Callable[[Any], Receipt]  #: from the JSON of a 2xx answer; whatever it raises is uncertain
    method: str = "POST"


@dataclass(frozen=True)
class Read(Generic[P, S]):
    """One way to look for the effect."""

    asked: Asked
    path: Callable[[Target[P]], str | None]  #: None: cannot be asked this way, as without a remote id
    found: Callable[[Any], Found[S]]  #: from one JSON object; whatever it raises is unknown
    #: Whether (status, JSON or None) is this system's own way to say "not there". Everything else is unknown: a 404 may mean
    #: "no permission", an empty list "wrong tenant".
    absent: Callable[[int, Any], bool]


@dataclass(frozen=True)
class HttpOptions:
    """What seldom differs."""

    answers: Answers = field(default_factory=Answers)
    #: Further headers, asked for at each request: credentials.
    headers: Callable[[], Mapping[str, str]] = field(default=dict, repr=False)
    key_header: str = "Idempotency-Key"
    operation_header: str | None = "Counterfoil-Operation"  #: our operation_id, for the other side's log
    largest_answer: int = 1 << 16  #: bytes
    probe_timeout: float = 10.0  #: seconds
    connections: int = 100


class HttpSink(Generic[P, S]):
    """The adapter. A `url` that is only known later, from a setting, is given as a function. Nothing is opened before use."""

    def __init__(
        self,
        sink: Sink,
        url: str | Callable[[], str],
        write: Write[P],
        expected: Callable[[P], Expected[S]],
        reads: Sequence[Read[P, S]] = (),
        *,
        options: HttpOptions | None = None,
    ) -> None:
        if isinstance(url, str) and urlsplit(url).scheme not in ("http", "https"):
            raise DeclarationError(sink.name, "the address must begin with http:// or https://")
        self._sink, self._write, self._expected, self._reads = sink, write, expected, tuple(reads)
        self._url: Callable[[], str] = url if callable(url) else lambda: url
        self._options = options or HttpOptions()
        self._sessions: dict[asyncio.AbstractEventLoop, aiohttp.ClientSession] = {}

    @property
    def sink(self) -> Sink:
        return self._sink

    @property
    def codes(self) -> tuple[str, ...]:
        """The codes of `Permanent`, for `Errors(codes=…)`."""
        return self._options.answers.codes

    def expected(self, payload: P) -> Expected[S]:
        return self._expected(payload)

    async def effect(self, payload: P, attempt: Attempt) -> Receipt:
        """One request. Raises Temporary, Permanent or Uncertain."""
        body = orjson.dumps(self._write.body(payload, attempt))
        headers = {**self._options.headers(), self._options.key_header: attempt.key, "Content-Type": "application/json"}
        if self._options.operation_header is not None:
            headers[self._options.operation_header] = str(attempt.operation_id)
        path = self._write.path(payload)
        try:
            status, answered, data = await self._request(self._write.method, path, headers, attempt.timeout, body)
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError):
            raise Temporary from None  # no connection, so no first byte
        except (aiohttp.ClientError, OSError, _Cut):  # a time-out is an OSError
            raise Uncertain from None
        outcome = self._options.answers.outcome(status, answered)
        if outcome is not None:
            raise outcome
        try:
            return self._write.receipt(_json(answered, data))
        except _UNFIT:
            raise Uncertain from None

    async def probe(self, target: Target[P]) -> Observation[S]:
        """Ask in the declared order until one way finds it; absent only if every way that could be asked says so."""
        said_absent = False
        for read in self._reads:
            path = read.path(target)
            if path is None:
                continue
            seen = await self._look(read, path)
            if not isinstance(seen, Absent):
                return seen
            said_absent = True
        return Absent() if said_absent else Unknown()

    async def close(self) -> None:
        """Close the connections of the running loop; at the end of the process this happens by itself."""
        session = self._sessions.pop(asyncio.get_running_loop(), None)
        if session is not None:
            await session.close()

    async def _look(self, read: Read[P, S], path: str) -> Observation[S]:
        try:
            status, answered, data = await self._request("GET", path, self._options.headers(), self._options.probe_timeout)
            body = _json(answered, data) if _is_json(answered) else None
            if read.absent(status, body):
                return Absent()
            if status != 200 or not body:
                return Unknown()
            if isinstance(body, list):
                found = [read.found(one) for one in body]
                return found[0] if len(found) == 1 else Several(found)
            return read.found(body)
        except (aiohttp.ClientError, OSError, _Cut, *_UNFIT):
            return Unknown()

    async def _request(
        self, method: str, path: str, headers: Mapping[str, str], within: float, body: bytes | None = None
    ) -> tuple[int, Mapping[str, str], bytes | None]:
        """Status, headers and body, `within` seconds; the body is None where it is larger than the limit."""
        wait = aiohttp.ClientTimeout(total=within, connect=within * _CONNECT_SHARE)
        url = self._url().rstrip("/") + path
        async with self._session().request(
            method, url, data=body, headers=headers, timeout=wait, allow_redirects=False
        ) as answer:
            limit = self._options.largest_answer
            data = bytearray()
            while chunk := await answer.content.read(limit + 1 - len(data)):
                data += chunk
                if len(data) > limit:
                    answer.close()
                    return answer.status, answer.headers, None
            return answer.status, answer.headers, bytes(data)

    def _session(self) -> aiohttp.ClientSession:
        loop = asyncio.get_running_loop()
        session = self._sessions.get(loop)
        if session is None:
            connector = aiohttp.TCPConnector(limit=self._options.connections)
            session = self._sessions[loop] = aiohttp.ClientSession(
                connector=connector,
                cookie_jar=aiohttp.DummyCookieJar(),
                headers={"Accept": "application/json", "Accept-Encoding": "identity"},
                auto_decompress=False,
                middlewares=(_once,),
            )
            weakref.finalize(self, _shut, connector)
        return session


class _Cut(Exception):
    """The connection was lost after the request may have been sent."""


async def _once(request: aiohttp.ClientRequest, send: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
    """aiohttp sends PUT, DELETE and GET again by itself when a connection is lost: one attempt would be two requests."""
    try:
        return await send(request)
    except aiohttp.ClientConnectorError:
        raise
    except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError):
        raise _Cut from None


def _shut(connector: aiohttp.BaseConnector) -> None:
    """Close without a loop, at the end of the process."""
    if not connector.closed:
        try:
            next(connector.close().__await__())
        except (StopIteration, RuntimeError):
            return


def _is_json(headers: Mapping[str, str]) -> bool:
    kind = headers.get("Content-Type", "").partition(";")[0].strip().lower()
    return kind == "application/json" or kind.endswith("+json")


def _json(headers: Mapping[str, str], data: bytes | None) -> Any:
    """Raises ValueError for anything but JSON: HTML with 200 is a login page, not an answer."""
    if data is None or not _is_json(headers):
        raise ValueError
    return orjson.loads(data)
