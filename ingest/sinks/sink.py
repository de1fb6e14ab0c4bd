"""Interface of a sink for records, and the errors of a sink that may work again later."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from controller.contract.records import Record


class SinkUnavailableError(Exception):
    """The records may not have arrived. The sink may work again later."""


class SinkFullError(SinkUnavailableError):
    """The sink has no room. It works again when there is room."""


class Sink(Protocol):
    """A sink, which takes records in order."""

    def append(self, records: Sequence[Record]) -> None:
        """Append and wait for all acknowledgements. Raise SinkUnavailableError if some records may not have arrived."""

    def complete_read_requested(self) -> bool:
        """Return whether a reader has requested a complete read since the last call."""

    def newest_generation(self) -> int:
        """Return the generation of the cluster's newest record, or -1. Raise SinkUnavailableError."""

    def close(self) -> None:
        """Release the sink."""
