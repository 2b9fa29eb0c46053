"""What leaves with a transition: the state record's value and the dead letter's headers, in the schemas' words.

The ledger writes rows and knows no Avro; the schemas know no rows. This joins them, for enqueue, relay and worker alike.
"""

from functools import cache
from importlib.metadata import version
from uuid import UUID

from counterfoil.core.canonical import of_text
from counterfoil.core.identity import keyed_digest
from counterfoil.core.roads import COMMAND, TO_WORKERS, arrival_topic
from counterfoil.ledger.dead_letters import Letter
from counterfoil.ledger.moves import StateLine, Writer
from counterfoil.ledger.names import Ledger
from counterfoil.ledger.raw_records import Raw
from counterfoil.schemas.envelope import DeadLetter, dead_letter_texts
from counterfoil.schemas.state_record import StateRecord, state_codec

__all__ = ["consumer", "raw_words", "writer_of"]


@cache
def consumer() -> str:
    """Name and version of this program, as dead letters name it."""
    return f"counterfoil/{version('counterfoil')}"


def writer_of(ledger: Ledger) -> Writer:
    """The writer of one ledger; make it once a process."""
    encode, secret = state_codec(ledger.state_schema).encode, ledger.secret

    def value(line: StateLine) -> bytes:
        epoch, sequence, kind, entity, version, state, attempt, revision, remote_id, reason, time = line
        business_key = keyed_digest(secret, of_text(entity))
        return encode(
            StateRecord(
                epoch,
                sequence,
                kind,
                entity,
                version,
                state,
                attempt,
                revision,
                remote_id,
                ledger.secret_id,
                business_key,
                None,
                reason,
                time,
            )
        )

    return Writer(ledger, value, _words)


def _words(ledger: Ledger, letter: Letter) -> list[tuple[str, str]]:
    facts = letter.facts
    return dead_letter_texts(
        DeadLetter(
            cause=letter.cause,
            reason=letter.reason,
            type=facts.type,
            consumer=consumer(),
            topic=arrival_topic(ledger.name, facts.type, letter.road or TO_WORKERS[COMMAND]),
            partition=-1 if letter.partition is None else letter.partition,
            offset=-1 if letter.offset is None else letter.offset,
            timestamp=-1,
            operation_id=facts.operation_id,
            attempt=letter.attempt,
        )
    )


def raw_words(raw: Raw, cause: UUID) -> list[tuple[str, str]]:
    """The headers of a dead letter that has no operation: an undecodable record."""
    letter = DeadLetter(
        cause=cause,
        reason=str(raw.reason),
        type=raw.type,
        consumer=consumer(),
        topic=raw.topic,
        partition=raw.partition,
        offset=raw.offset,
        timestamp=-1 if raw.timestamp_ms is None else raw.timestamp_ms,
    )
    return dead_letter_texts(letter, raw.headers)
