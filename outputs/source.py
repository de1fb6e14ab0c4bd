"""The interface of a reader of outputs, whether they are journals or topics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


class OutputsError(Exception):
    """Outputs that cannot be read, and trying again cannot help: one sentence."""


class SourceDownError(Exception):
    """The outputs cannot be read for now, in one sentence; trying again may help."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """Lines of one output, in order."""

    output: str
    lines: Sequence[bytes]
    live: bool  # written after the reader began to follow
    after_gap: bool = False  # rows before these were dropped unread
    thinned: bool = False  # compaction dropped rows before or between these: newer ones have replaced them
    begins_anew: bool = False  # the output was replaced: what it said before is void


class OutputsSource(Protocol):
    """A reader of outputs."""

    def poll(self) -> Sequence[Chunk]:
        """The new rows; raises SourceDownError, or OutputsError if trying again cannot help."""

    @property
    def caught_up(self) -> bool:
        """Whether everything that was there at the first poll has been given."""

    @property
    def missing(self) -> tuple[str, ...]:
        """The wanted outputs that were not there at the newest poll."""

    def close(self) -> None:
        """Let go of connections."""
