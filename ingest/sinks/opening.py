"""Open the sink that a configuration names."""

from __future__ import annotations

import threading

from ingest.config import IngestConfig
from ingest.separation import refuse_watched_cluster
from ingest.sinks.journal_sink import JournalSink
from ingest.sinks.sink import Sink
from transport.address import JournalAddress, KafkaAddress


def open_sink(config: IngestConfig, stop: threading.Event) -> Sink:
    """Open the configured sink. Raise IngestError or SinkUnavailableError."""
    if isinstance(config.to, JournalAddress):
        return JournalSink(config)
    from ingest.sinks.kafka_sink import KafkaSink  # here, because a journal needs no Kafka client

    assert isinstance(config.to, KafkaAddress)
    return KafkaSink(config.to, config.cluster, stop, lambda kafka: refuse_watched_cluster(config, kafka, stop))
