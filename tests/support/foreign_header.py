"""Sends one record whose header's name is no UTF-8, as a client in another language may: `python -m … BROKERS TOPIC`.

Our own client refuses to, so it is one in plain Python, in a process of its own.
"""

import asyncio
import os
import sys

os.environ["AIOKAFKA_NO_EXTENSIONS"] = "1"  # its compiled part would encode the name by itself

from aiokafka import AIOKafkaProducer  # type: ignore[import-untyped]


class _Name(str):
    def encode(self, *_: object, **__: object) -> bytes:
        return b"\xff\xfe"


async def _send(brokers: str, topic: str) -> None:
    producer = AIOKafkaProducer(bootstrap_servers=brokers)
    await producer.start()
    await producer.send_and_wait(topic, b"value", key=b"key", headers=[(_Name("name"), b"1")])
    await producer.stop()


if __name__ == "__main__":
    asyncio.run(_send(*sys.argv[1:]))
