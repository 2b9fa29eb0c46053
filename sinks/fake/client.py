"""A synchronous client of the fake sink, for effects and probes that are not async: one connection a call, outcomes raised."""

import http.client
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

import orjson

from counterfoil.core.errors import Temporary, Uncertain
from counterfoil.core.records import Attempt, Receipt
from counterfoil.sinks.answers import Answers

_ANSWERS = Answers(permanent={400: "http_400", 412: "http_412", 422: "http_422"})


class FakeClient:
    """`append` writes a new row at each call; `replace` writes the entity's one row."""

    codes = _ANSWERS.codes

    def __init__(self, url: str) -> None:
        self._host, self._port = urlsplit(url).hostname or "", urlsplit(url).port

    def append(self, entity: str, fields: Mapping[str, Any], attempt: Attempt, *, version: int | None = None) -> Receipt:
        body = {"entity": entity, "fields": fields, "version": version}
        return self._write("POST", "/rows", body, attempt)

    def replace(self, entity: str, fields: Mapping[str, Any], attempt: Attempt, *, version: int | None = None) -> Receipt:
        return self._write("PUT", f"/entities/{quote(entity, safe='')}", {"fields": fields, "version": version}, attempt)

    def by_key(self, key: str, timeout: float = 10.0) -> list[dict[str, Any]]:
        return self._search({"key": key}, timeout)

    def by_entity(self, entity: str, timeout: float = 10.0) -> list[dict[str, Any]]:
        return self._search({"entity": entity}, timeout)

    def _write(self, method: str, path: str, body: Mapping[str, Any], attempt: Attempt) -> Receipt:
        headers = {
            "Content-Type": "application/json",
            "Idempotency-Key": attempt.key,
            "Counterfoil-Operation": str(attempt.operation_id),
        }
        connection = http.client.HTTPConnection(self._host, self._port, timeout=attempt.timeout)
        try:
            try:
                connection.connect()
            except OSError:
                raise Temporary from None  # no connection, so no first byte
            try:
                connection.request(method, path, orjson.dumps(body), headers)
                answer = connection.getresponse()
                data = answer.read(1 << 16)
            except (OSError, http.client.HTTPException):
                raise Uncertain from None
        finally:
            connection.close()
        outcome = _ANSWERS.outcome(answer.status, dict(answer.headers.items()))
        if outcome is not None:
            raise outcome
        read = orjson.loads(data)
        return Receipt(remote_id=read["id"], version=read["version"])

    def _search(self, query: Mapping[str, str], timeout: float) -> list[dict[str, Any]]:
        connection = http.client.HTTPConnection(self._host, self._port, timeout=timeout)
        try:
            connection.request("GET", f"/rows?{urlencode(query)}")
            answer = connection.getresponse()
            if answer.status != 200:
                raise Uncertain
            rows: list[dict[str, Any]] = orjson.loads(answer.read())
            return rows
        finally:
            connection.close()
