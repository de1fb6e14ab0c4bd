"""Sentences for kafka-python's errors, in Kafka's own words or ours, without the library's."""

from __future__ import annotations

import pytest
from kafka.errors import KafkaConnectionError, KafkaTimeoutError, NotEnoughReplicasError, UnsupportedCodecError

from outputs.kafka_connections import error_in_words


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (KafkaTimeoutError("Unable to bootstrap from ['a:1']"), "no connection is accepted"),
        (KafkaConnectionError("[Errno 111] ECONNREFUSED"), "no connection is accepted"),
        (KafkaTimeoutError("Expiring 1 record(s) for TopicPartition(...)"), "no answer came in time"),
        (NotEnoughReplicasError(), "the brokers answer NOT_ENOUGH_REPLICAS"),
        (ConnectionResetError(104, "Connection reset by peer"), "Connection reset by peer"),
        (UnsupportedCodecError("zstd"), "UnsupportedCodecError: zstd"),
    ],
)
def test_an_outage_is_half_a_sentence(error: Exception, words: str) -> None:
    assert error_in_words(error) == words
