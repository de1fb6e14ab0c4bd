"""Read what the streaming job publishes, from journals or Kafka topics."""

from __future__ import annotations

from collections.abc import Sequence

from outputs.source import Chunk, OutputsError, OutputsSource, SourceDownError
from transport.address import Address, JournalAddress

__all__ = ["Chunk", "OutputsError", "OutputsSource", "SourceDownError", "open_outputs"]


def open_outputs(address: Address, wanted: Sequence[str]) -> OutputsSource:
    """The wanted outputs at this address, from their beginning; given in this order where several have something."""
    if isinstance(address, JournalAddress):
        from outputs.journal import JournalSource

        return JournalSource(address.directory, wanted)
    from outputs.kafka import KafkaSource  # brings kafka-python, which journals do without

    return KafkaSource(address, wanted)
