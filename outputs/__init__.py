"""Readers of the job's outputs, or of the changes that the job reads, from journals or Kafka topics."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from outputs.source import Chunk, OutputsError, OutputsSource, SourceDownError
from transport.address import Address, JournalAddress

__all__ = ["Chunk", "OutputsError", "OutputsSource", "SourceDownError", "open_changes", "open_outputs"]

_CHANGES: Final = "changes"


def open_outputs(address: Address, wanted: Sequence[str], late: Collection[str] = ()) -> OutputsSource:
    """Open the wanted outputs from their beginning. If several have rows, they come in this order.

    Of Kafka's topics the `late` ones are not read before all others were, because they may have most rows.
    """
    if isinstance(address, JournalAddress):
        from outputs.journal import JournalSource

        return JournalSource(address.directory, wanted)
    from outputs.kafka import KafkaSource  # here, because it imports kafka-python, which journals do not need

    return KafkaSource(address, wanted, late=late)


def open_changes(address: Address) -> OutputsSource:
    """Open the stream of `kontrast watch` from its beginning, one record per line."""
    if isinstance(address, JournalAddress):
        from outputs.journal import JournalSource

        directory = address.directory.absolute()
        return JournalSource(directory.parent, (directory.name,))
    from outputs.kafka import KafkaSource

    return KafkaSource(address, (_CHANGES,), {address.topic: _CHANGES})
