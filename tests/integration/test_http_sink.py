"""The HTTP adapter against the fake sink and against answers that no fake would give."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from counterfoil.core.errors import DeclarationError, Outcome, Permanent, Temporary, Uncertain
from counterfoil.core.records import Absent, Asked, Found, Receipt, Several, Unknown, hours, seconds
from counterfoil.core.sink import ByKey, Sink
from counterfoil.parts.ports import free_ports
from counterfoil.sinks.adapter import Adapter
from counterfoil.sinks.fake import Behaviour, FakeSink, Mapped, Nature, Plan, Rule, fake_adapter
from counterfoil.sinks.http import HttpSink
from examples import over_http, sync_customer
from tests.support.attempts import a_target, an_attempt

CRM = Sink("crm", ByKey(hours(24)), request_life=seconds(5), read_lag=seconds(0))


@dataclass(frozen=True)
class Customer:
    id: str
    version: int
    email: str


@dataclass(frozen=True)
class InCrm:
    email: str


ANN = Customer("452", 7, "a@b.c")
MAPPED = Mapped[Customer, InCrm](
    lambda c: c.id, lambda c: {"email": c.email}, lambda fields: InCrm(fields["email"]), lambda c: c.version, append=False
)


@pytest.fixture
def fake(tmp_path: Path) -> Iterator[FakeSink]:
    with FakeSink.started(tmp_path) as sink:
        yield sink


@asynccontextmanager
async def adapted(url: str) -> AsyncIterator[HttpSink[Customer, InCrm]]:
    sink = fake_adapter(CRM, url, MAPPED)
    try:
        yield sink
    finally:
        await sink.close()


Script = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def answering(answer: bytes, *, hold: bool = False) -> AsyncIterator[tuple[HttpSink[Customer, InCrm], list[bytes]]]:
    """An adapter against a server that gives every request the same bytes, and the requests it got."""
    received: list[bytes] = []
    released = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        received.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(answer)
        await writer.drain()
        if hold:
            await released.wait()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        async with adapted(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}") as sink:
            yield sink, received
    finally:
        released.set()
        server.close()
        await server.wait_closed()


def an_answer(status: str, body: str = "", kind: str = "application/json", more: str = "") -> bytes:
    head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n{more}\r\n"
    return (head + body).encode()


def test_the_sink_is_an_adapter(fake: FakeSink) -> None:
    adapter: Adapter[Customer, InCrm] = fake_adapter(CRM, fake.url, MAPPED)
    assert adapter.sink is CRM


def test_an_address_of_another_kind_is_refused_when_declared() -> None:
    with pytest.raises(DeclarationError):
        fake_adapter(CRM, "file:///etc/passwd", MAPPED)


async def test_a_write_is_found_by_key_by_id_and_by_entity(fake: FakeSink) -> None:
    async with adapted(fake.url) as sink:
        attempt = an_attempt()
        receipt = await sink.effect(ANN, attempt)
        assert (receipt.remote_id, receipt.version) == ("452", 7)
        expected = sink.expected(ANN)
        by_key = await sink.probe(a_target(ANN, attempt))
        assert by_key == Found(expected.fields, Asked.KEY, "452", expected.version)
        by_id = await sink.probe(a_target(ANN, an_attempt(), receipt))
        assert isinstance(by_id, Found)
        assert by_id.asked is Asked.REMOTE_ID or by_id.asked is Asked.BUSINESS_KEY


async def test_nothing_is_absent_unless_every_way_says_so(fake: FakeSink) -> None:
    async with adapted(fake.url) as sink:
        assert await sink.probe(a_target(ANN, an_attempt())) == Absent()
        assert await sink.probe(a_target(ANN, an_attempt(), Receipt("452"))) == Absent()


async def test_more_than_one_is_several(fake: FakeSink) -> None:
    appending = Mapped[Customer, InCrm](MAPPED.entity, MAPPED.fields, MAPPED.shape, MAPPED.version)
    sink = fake_adapter(CRM, fake.url, appending)
    await sink.effect(ANN, an_attempt())
    await sink.effect(ANN, an_attempt())
    seen = await sink.probe(a_target(ANN, an_attempt()))
    await sink.close()
    assert isinstance(seen, Several)
    assert [found.remote_id for found in seen.found] == ["452.1", "452.2"]


@pytest.mark.parametrize(
    ("behaviour", "outcome"),
    [
        (Behaviour.ANSWER_LOST, Uncertain),
        (Behaviour.CUT, Uncertain),
        (Behaviour.ERROR_APPLIED, Uncertain),
        (Behaviour.KEY_IN_USE, Uncertain),
        (Behaviour.RATE_LIMIT, Temporary),
        (Behaviour.REJECT, Permanent),
        (Behaviour.LATE, Uncertain),
    ],
)
async def test_each_fault_has_its_outcome_and_the_request_was_made_once(
    fake: FakeSink, behaviour: Behaviour, outcome: type[Outcome]
) -> None:
    """D61; and no hidden second send: the client library repeats a PUT by itself when the connection is lost."""
    fake.plan(Plan(rules=(Rule(behaviour, seconds=30),)))
    async with adapted(fake.url) as sink:
        with pytest.raises(outcome) as raised:
            await sink.effect(ANN, an_attempt(timeout=1.0 if behaviour is Behaviour.LATE else 10.0))
    assert len(fake.entries()) == 1
    assert raised.value.__cause__ is None
    assert raised.value.__context__ is None or raised.value.__suppress_context__
    if isinstance(raised.value, Permanent):
        assert raised.value.code in sink.codes


async def test_a_reused_connection_that_is_cut_is_not_sent_again(fake: FakeSink) -> None:
    async with adapted(fake.url) as sink:
        await sink.effect(ANN, an_attempt())
        fake.plan(Plan(rules=(Rule(Behaviour.CUT),)))
        with pytest.raises(Uncertain):
            await sink.effect(ANN, an_attempt())
    assert len(fake.entries()) == 2


async def test_a_refused_connection_is_temporary() -> None:
    async with adapted(f"http://127.0.0.1:{free_ports(1)[0]}") as sink:
        with pytest.raises(Temporary):
            await sink.effect(ANN, an_attempt())
        assert await sink.probe(a_target(ANN, an_attempt())) == Unknown()


async def test_a_name_that_does_not_exist_is_temporary() -> None:
    async with adapted("http://nowhere.invalid") as sink:
        with pytest.raises(Temporary):
            await sink.effect(ANN, an_attempt())


@pytest.mark.parametrize(
    "answer",
    [
        an_answer("200 OK", "<html>log in</html>", "text/html"),
        an_answer("200 OK", '{"id": 7}'),
        an_answer("200 OK", "[]"),
        an_answer("200 OK", '{"id": "452", "version": 7, "more": "' + "x" * 70_000 + '"}'),
        an_answer("200 OK", '{"id": "452"', more="Content-Encoding: gzip\r\n"),
        an_answer("204 No Content"),
        an_answer("301 Moved Permanently", more="Location: http://127.0.0.1:9/\r\n"),
        an_answer("307 Temporary Redirect", more="Location: /rows\r\n"),
        an_answer("503 Service Unavailable", more="Retry-After: 1\r\n"),
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 500\r\n\r\n{",
        b"nonsense\r\n\r\n",
        b"",
    ],
)
async def test_an_answer_that_cannot_be_relied_on_is_uncertain(answer: bytes) -> None:
    async with answering(answer) as (sink, received):
        with pytest.raises(Uncertain):
            await sink.effect(ANN, an_attempt())
        assert len(received) == 1


async def test_no_answer_in_time_is_uncertain() -> None:
    async with answering(b"HTTP/1.1 200 OK\r\n", hold=True) as (sink, _):
        with pytest.raises(Uncertain):
            await sink.effect(ANN, an_attempt(timeout=0.3))


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (401, "{}", "application/json"),
        (403, "{}", "application/json"),
        (404, '{"code": "not_authorised"}', "application/json"),
        (404, "", "text/html"),
        (410, "{}", "application/json"),
        (200, "", "application/json"),
        (200, "{}", "application/json"),
        (200, "null", "application/json"),
        (200, "<html>log in</html>", "text/html"),
        (200, "[]", "text/html"),
        (200, '[{"id": "1"}]', "application/json"),
        (200, '[{"id": "1", "version": "v7", "fields": {}}]', "application/json"),
        (301, "[]", "application/json"),
        (500, "[]", "application/json"),
    ],
)
async def test_only_the_declared_pattern_is_absent(fake: FakeSink, status: int, body: str, kind: str) -> None:
    """D79: a 404 that may mean "no permission", a login page and a redirect say nothing."""
    fake.answer_reads(status, body, kind)
    async with adapted(fake.url) as sink:
        assert await sink.probe(a_target(ANN, an_attempt())) == Unknown()
        fake.reads_work()
        assert await sink.probe(a_target(ANN, an_attempt())) == Absent()


async def test_a_lagging_read_says_absent_until_it_does_not(tmp_path: Path) -> None:
    with FakeSink.started(tmp_path, nature=Nature(read_lag=3600)) as fake:
        async with adapted(fake.url) as sink:
            attempt = an_attempt()
            await sink.effect(ANN, attempt)
            assert await sink.probe(a_target(ANN, attempt)) == Absent()
            fake.advance(3600)
            assert isinstance(await sink.probe(a_target(ANN, attempt)), Found)


async def test_no_text_of_an_answer_reaches_an_error() -> None:
    """S18."""
    async with answering(an_answer("500 Oops", '{"secret": "hunter2"}')) as (sink, received):
        with pytest.raises(Uncertain) as raised:
            await sink.effect(ANN, an_attempt(key="cf1-key"))
    assert "hunter2" not in repr(raised.value) + str(raised.value)
    assert b"Idempotency-Key: cf1-key" in received[0]
    assert b"PUT /entities/452 " in received[0]


def test_one_adapter_serves_one_loop_after_another(fake: FakeSink) -> None:
    sink = fake_adapter(CRM, fake.url, MAPPED)

    async def once() -> None:
        await sink.effect(ANN, an_attempt())
        await sink.close()

    asyncio.run(once())
    asyncio.run(once())
    assert len(fake.entries()) == 2


def test_a_process_that_ends_without_closing_says_nothing(fake: FakeSink) -> None:
    """Faust closes its loop without telling the adapters."""
    import subprocess
    import sys

    program = f"""
import asyncio
from tests.integration.test_http_sink import ANN, CRM, MAPPED, an_attempt, fake_adapter
sink = fake_adapter(CRM, {fake.url!r}, MAPPED)
async def once(): await sink.effect(ANN, an_attempt())
loop = asyncio.new_event_loop()
loop.run_until_complete(once())
loop.close()
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


async def test_the_example_puts_a_customer_under_its_key(monkeypatch: pytest.MonkeyPatch) -> None:
    received: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        received.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(an_answer("200 OK", '{"id": "crm-452", "version": 7}') if len(received) == 1 else an_answer("422 No"))
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    monkeypatch.setenv("CRM_URL", f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
    monkeypatch.setenv("CRM_TOKEN", "t0ken")
    attempt, ann = an_attempt(), sync_customer.Customer("4/52", 7, "a@b.c")
    try:
        assert await over_http.CRM.effect(ann, attempt) == Receipt("crm-452", 7)
        with pytest.raises(Permanent):
            await over_http.CRM.effect(ann, attempt)
    finally:
        await over_http.CRM.close()
        server.close()
        await server.wait_closed()
    head = received[0].decode().splitlines()
    assert head[0] == "PUT /customers/4%2F52 HTTP/1.1"
    assert {"Authorization: Bearer t0ken", f"Idempotency-Key: {attempt.key}"} <= set(head)
