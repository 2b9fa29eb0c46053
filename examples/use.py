"""What a caller does: enqueue, ask and cancel on its own connection, in its own transaction."""

from sqlalchemy import Connection
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Session

from counterfoil import Cancelled, OperationId, State, cancel, enqueue, enqueue_many, status, statuses
from examples.sync_customer import Customer, sync_customer
from examples.upsert_projection import Stock, upsert_projection


def caller(connection: Connection, session: Session) -> None:
    one: OperationId = enqueue(connection, sync_customer, Customer("452", 7, "a@b.c"), correlation_id="order-9")
    many = enqueue_many(session, upsert_projection, (Stock(str(n), 1, 0) for n in range(10_000)))
    failed = status(connection, many[0]).state is State.QUARANTINED
    if failed and cancel(connection, one, reason="asked by the customer") is Cancelled.ASKED:
        print(len(statuses(connection, correlation_id="order-9")))


async def from_async(session: AsyncSession) -> OperationId:
    return await session.run_sync(lambda s: enqueue(s, sync_customer, Customer("452", 7, "a@b.c")))
