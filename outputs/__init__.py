"""Read what the streaming job publishes, or the changes that it works on, from journals or Kafka topics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from outputs.source import Chunk, OutputsError, OutputsSource, SourceDownError
from transport.address import Address, JournalAddress

__all__ = ["CHANGES", "Chunk", "OutputsError", "OutputsSource", "SourceDownError", "open_changes", "open_outputs"]

CHANGES: Final = "changes"
"""How the stream that `kontrast watch` writes is called among what a source lacks."""


def open_outputs(address: Address, wanted: Sequence[str]) -> OutputsSource:
    """The wanted outputs at this address, from their beginning; given in this order where several have something."""
    if isinstance(address, JournalAddress):
        from outputs.journal import JournalSource

        return JournalSource(address.directory, wanted)
    from outputs.kafka import KafkaSource  # brings kafka-python, which journals do without

    return KafkaSource(address, wanted)


def open_changes(address: Address) -> OutputsSource:
    """The stream of `kontrast watch` at this address, from its beginning: a record a line."""
    if isinstance(address, JournalAddress):
        from outputs.journal import JournalSource

        directory = address.directory.absolute()
        return JournalSource(directory.parent, (directory.name,))
    from outputs.kafka import KafkaSource

    return KafkaSource(address, (CHANGES,), {address.topic: CHANGES})
