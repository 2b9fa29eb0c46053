"""Effects outside that answer in ways that nobody foresaw: each attempt is answered, and the worker goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace

import pytest

from counterfoil import Attempt, Effect, Errors, NotAtAll, Receipt, Sink, Temporary, enqueue_many, seconds
from counterfoil.ledger import settlement
from counterfoil.parts import FaultProxy, fault_proxy
from counterfoil.streams.worker import settling
from examples.upsert_projection import Stock
from tests.support.lanes import cut_line
from tests.support.ledgers import Bed
from tests.support.stock import upsert_projection

ONCE = Sink("once", NotAtAll(), request_life=seconds(1), read_lag=seconds(0))


class Unreadable(Temporary):
    """Raises when anybody reads the sink's wish."""

    def __init__(self) -> None:
        pass

    @property
    def retry_after(self) -> None:
        raise RuntimeError

    @retry_after.setter
    def retry_after(self, value: object) -> None:
        pass


class Unchecked(Receipt):
    """Skips the checks of a receipt."""

    def __post_init__(self) -> None:
        pass


@pytest.fixture
def proxy(ledger: Bed) -> Iterator[FaultProxy]:
    with fault_proxy(ledger.server.port) as proxy:
        yield proxy


ANSWERS = [Unreadable(), Unchecked(5), KeyboardInterrupt(), asyncio.CancelledError(), GeneratorExit(), SystemExit(3)]  # type: ignore[arg-type]


@pytest.mark.parametrize("answer", ANSWERS, ids=lambda answer: type(answer).__name__)
@pytest.mark.parametrize("is_async", [False, True], ids=["on a thread", "on the loop"])
async def test_an_odd_answer_is_a_doubt_and_no_fault_of_the_worker(
    ledger: Bed, proxy: FaultProxy, answer: Receipt | BaseException, is_async: bool
) -> None:
    """S2, S8, L2."""

    def push(stock: Stock, attempt: Attempt) -> Receipt:
        if stock.sku == "good":
            return Receipt("r-1")
        if isinstance(answer, BaseException):
            raise answer
        return answer

    async def push_async(stock: Stock, attempt: Attempt) -> Receipt:
        return push(stock, attempt)

    effect = Effect[Stock](push_async if is_async else push, ONCE, timeout=seconds(5), errors=Errors())
    operation_type = replace(upsert_projection, name="outside", effect=effect, proof=None)
    with ledger.engine.begin() as connection:
        enqueue_many(connection, operation_type, [Stock("bad", 1, 1), Stock("good", 1, 1)])
    with cut_line(ledger, operation_type, proxy) as line:
        await line.work_off()
    states = ledger.rows("SELECT state FROM counterfoil.state ORDER BY state")
    assert [row["state"] for row in states] == ["awaiting_confirmation", "succeeded"]


async def test_an_answer_that_cannot_be_written_is_saved_as_a_doubt(
    ledger: Bed, proxy: FaultProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S8, L2: whatever fails on the way to the ledger, the attempt is not forgotten and the others are saved as they are."""

    def save(connection, writer, rules, locked, results):  # type: ignore[no-untyped-def]
        if any(result.answered.receipt == Receipt("odd") for result in results):
            raise TypeError
        return settlement.save(connection, writer, rules, locked, results)

    monkeypatch.setattr(settling, "save", save)
    effect = Effect[Stock](lambda stock, attempt: Receipt(stock.sku), ONCE, timeout=seconds(5))
    operation_type = replace(upsert_projection, name="outside", effect=effect, proof=None)
    with ledger.engine.begin() as connection:
        enqueue_many(connection, operation_type, [Stock(name, 1, 1) for name in ("a", "odd", "z")])
    with cut_line(ledger, operation_type, proxy) as line:
        await line.work_off()
    states = ledger.rows("SELECT state, reason FROM counterfoil.state ORDER BY state")
    assert [row["state"] for row in states] == ["awaiting_confirmation", "succeeded", "succeeded"]
    assert states[0]["reason"] == "wrong_answer"
