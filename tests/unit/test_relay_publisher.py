"""What a delivery report means, and which properties the producer has."""

from __future__ import annotations

from datetime import timedelta

import pytest
from confluent_kafka import KafkaError

from counterfoil.core.reasons import Reason
from counterfoil.streams.relay.publisher import Fate, Sending, fate_of, producer_settings

SENDING = Sending("127.0.0.1:9", {"partitioner": "random", "acks": "1"}, timedelta(seconds=30), 1_200_000)


def test_only_a_report_without_an_error_is_a_delivery() -> None:
    assert fate_of(None) == (Fate.DELIVERED, None)


@pytest.mark.parametrize(
    "code",
    [
        KafkaError._MSG_TIMED_OUT,
        KafkaError._TIMED_OUT,
        KafkaError._PURGE_INFLIGHT,
        KafkaError._TRANSPORT,
        KafkaError.NOT_ENOUGH_REPLICAS,
        KafkaError.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        KafkaError.REQUEST_TIMED_OUT,
        KafkaError.UNKNOWN,
    ],
)
def test_whatever_may_have_reached_the_log_is_unknown_and_never_a_failure(code: int) -> None:
    """D10, D11."""
    assert fate_of(KafkaError(code))[0] is Fate.UNKNOWN


@pytest.mark.parametrize("code", [KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.RECORD_LIST_TOO_LARGE])
def test_a_refused_size_is_for_good_once_the_row_was_alone(code: int) -> None:
    """D07, D08."""
    assert fate_of(KafkaError(code)) == (Fate.NEVER, Reason.MESSAGE_TOO_LARGE)


@pytest.mark.parametrize("code", [KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION])
def test_a_missing_topic_is_temporary(code: int) -> None:
    """D13."""
    assert fate_of(KafkaError(code)) == (Fate.NO_ROAD, Reason.TOPIC_MISSING)


def test_a_row_that_was_purged_from_the_queue_was_not_sent() -> None:
    assert fate_of(KafkaError(KafkaError._PURGE_QUEUE))[0] is Fate.NOT_SENT


def test_a_fatal_error_ends_the_producer() -> None:
    assert fate_of(KafkaError(KafkaError._FATAL))[0] is Fate.BROKEN


def test_an_installation_cannot_take_the_promises_away() -> None:
    """D19: keys land where Java clients put them, and every acknowledgement is that of all replicas."""
    settings = producer_settings(SENDING)
    assert settings["partitioner"] == "murmur2_random"
    assert settings["acks"] == "all"
    assert settings["enable.idempotence"] is True


def test_the_second_producer_sends_batches_of_one() -> None:
    """D08."""
    assert producer_settings(SENDING, one_by_one=True)["batch.num.messages"] == 1
