"""A shop that welcomes each new customer with one letter: a file, outside the database."""

import sys
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import create_engine, text

from counterfoil import (
    RECEIPT,
    Attempt,
    ByNature,
    Effect,
    Operations,
    OperationType,
    Receipt,
    Sink,
    Unordered,
    enqueue,
    read_settings,
    seconds,
)

FOLDER = Path("letters")
POST = Sink("post", ByNature(), request_life=seconds(0), read_lag=seconds(0))  # the same call leaves the same file behind


@dataclass(frozen=True)
class Letter:
    customer_id: str
    name: str


def write(letter: Letter, attempt: Attempt) -> Receipt:
    place = FOLDER / f"{attempt.result_key}.txt"  # a name that no other operation has
    part = place.with_suffix(f".{attempt.number}")
    part.write_text(f"Dear {letter.name}, welcome!\n")
    part.rename(place)  # whole or not at all
    return Receipt(remote_id=place.name)


welcome = OperationType[Letter](
    name="welcome",
    owner="team-shop",
    payload=Letter,
    contract=Path(__file__).parent / "welcome.avsc",
    order=Unordered(identity=lambda letter: letter.customer_id),
    effect=Effect(write, POST, timeout=seconds(10)),
    proof=RECEIPT,  # the file's name is the proof
)
OPERATIONS = Operations(welcome)


def sign_up(customer_id: str, name: str) -> None:
    with create_engine(read_settings().database).begin() as connection:
        connection.execute(text("CREATE TABLE IF NOT EXISTS customer (id text PRIMARY KEY, name text NOT NULL)"))
        customer = text("INSERT INTO customer VALUES (:id, :name) ON CONFLICT DO NOTHING")
        connection.execute(customer, {"id": customer_id, "name": name})
        print(enqueue(connection, welcome, Letter(customer_id, name)))  # with the customer, or not at all


if __name__ == "__main__":
    sign_up(*sys.argv[1:3])
