"""The interface of a reader of outputs, whether they are journals or topics."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol


class OutputsError(Exception):
    """Outputs cannot be read, and a retry cannot help. The message is one sentence."""


class SourceDownError(Exception):
    """Outputs cannot be read now, but a retry may help. The message is one sentence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """Lines of one output, in order."""

    output: str
    lines: Sequence[bytes]
    live: bool  # whether the lines were written after the reader began to follow
    after_gap: bool = False  # rows before these were dropped unread
    thinned: bool = False  # compaction dropped rows here, because newer rows replace them
    begins_anew: bool = False  # the output was replaced, so its earlier rows are void


class OutputsSource(Protocol):
    """A reader of outputs. `missing` has the wanted outputs that did not exist at the newest poll."""

    wanted: tuple[str, ...]
    missing: tuple[str, ...]

    def poll(self) -> Sequence[Chunk]:
        """Return the new rows. Raise SourceDownError, or OutputsError if a retry cannot help."""

    @property
    def caught_up(self) -> bool:
        """Return whether all rows that existed at the first poll have been returned."""
        return self.has_read(self.wanted)

    def has_read(self, outputs: Collection[str]) -> bool:
        """Return whether all rows of these outputs that existed at the first poll have been returned."""

    def lacking(self, ends: Mapping[str, tuple[str, int]]) -> tuple[str, ...]:
        """Return the outputs that do not reach these ends, given by output as the journal's identity and an offset."""

    def close(self) -> None:
        """Close the connections."""
