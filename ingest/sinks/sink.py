"""The interface of a sink for records, and the error of one that may work again later."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from controller.contract.records import Record


class SinkUnavailableError(Exception):
    """The records may not have arrived; the same sink may work again later."""


class Sink(Protocol):
    """A sink, which takes records in order."""

    def append(self, records: Sequence[Record]) -> None:
        """Return when all are acknowledged; raises SinkUnavailableError when some may not have arrived."""

    def complete_read_requested(self) -> bool:
        """Whether a reader has requested a complete read since the last call."""

    def newest_generation(self) -> int:
        """The generation of the cluster's newest record that is there, -1 without one; raises SinkUnavailableError."""

    def close(self) -> None:
        """Let go of what is held."""
