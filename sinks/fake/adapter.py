"""The HTTP adapter as it fits the fake sink: the async way to it, and the shortest example of `HttpSink`."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar
from urllib.parse import quote

from counterfoil.core.records import Asked, Expected, Found, Receipt, Target
from counterfoil.core.sink import Sink
from counterfoil.sinks.answers import Answers
from counterfoil.sinks.http import HttpOptions, HttpSink, Read, Write

P = TypeVar("P")
S = TypeVar("S")


@dataclass(frozen=True)
class Mapped(Generic[P, S]):
    """How a payload becomes a row of the fake sink, and a row the observed shape."""

    entity: Callable[[P], str]
    fields: Callable[[P], Mapping[str, Any]]
    shape: Callable[[Mapping[str, Any]], S]
    version: Callable[[P], int | None] = lambda payload: None
    append: bool = True  #: a new row for each write that is applied, so that a second effect shows; else the entity's one row


def fake_adapter(sink: Sink, url: str | Callable[[], str], mapped: Mapped[P, S]) -> HttpSink[P, S]:
    """An async adapter; it asks by key, then by remote id, then by entity."""

    def body(payload: P, attempt: object) -> Mapping[str, Any]:
        return {"entity": mapped.entity(payload), "fields": mapped.fields(payload), "version": mapped.version(payload)}

    def path(payload: P) -> str:
        return "/rows" if mapped.append else f"/entities/{quote(mapped.entity(payload), safe='')}"

    def expected(payload: P) -> Expected[S]:
        return Expected(mapped.shape(mapped.fields(payload)), mapped.version(payload))

    def by_remote_id(target: Target[P]) -> str | None:
        receipt = target.receipt
        return f"/rows/{quote(receipt.remote_id, safe='')}" if receipt is not None and receipt.remote_id is not None else None

    def found(asked: Asked) -> Callable[[Any], Found[S]]:
        return lambda row: _found(row, asked, mapped.shape)

    def nothing(status: int, rows: Any) -> bool:
        return (status == 200 and rows == []) or (status == 404 and rows == {"code": "no_such_row"})

    return HttpSink(
        sink,
        url,
        Write(path, body, lambda answer: Receipt(answer["id"], answer["version"]), method="POST" if mapped.append else "PUT"),
        expected,
        (
            Read(Asked.KEY, lambda target: f"/rows?key={quote(target.key, safe='')}", found(Asked.KEY), nothing),
            Read(Asked.REMOTE_ID, by_remote_id, found(Asked.REMOTE_ID), nothing),
            Read(
                Asked.BUSINESS_KEY,
                lambda target: f"/rows?entity={quote(mapped.entity(target.payload), safe='')}",
                found(Asked.BUSINESS_KEY),
                nothing,
            ),
        ),
        options=HttpOptions(answers=Answers(permanent={400: "http_400", 412: "http_412", 422: "http_422"})),
    )


def _found(row: Mapping[str, Any], asked: Asked, shape: Callable[[Mapping[str, Any]], S]) -> Found[S]:
    """A row of the fake sink as an observation."""
    return Found(shape(row["fields"]), asked, row["id"], row["version"])
