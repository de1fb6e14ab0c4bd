"""Reader of outputs from a directory with one journal per output."""

from __future__ import annotations

import logging
import os
from collections.abc import Collection, Mapping, Sequence
from itertools import islice
from pathlib import Path

from outputs.source import Chunk, OutputsError, OutputsSource, SourceDownError
from transport.journal_reading import (
    JournalBatch,
    earliest_offset,
    end_offset,
    is_complete,
    journal_identity,
    read_journal,
)
from transport.segments import ForeignOffsetError, JournalError, NewerJournalError, OffsetGoneError, appearance

_READ_BYTES = 1024 * 1024
_CHUNKS_OF_ONE_OUTPUT = 64  # the most in one poll, so that stopping never waits for a long backlog

_logger = logging.getLogger("kontrast.outputs")


class _FollowedJournal:
    def __init__(self, directory: Path, output: str) -> None:
        self.output = output
        self._directory = directory
        self._identity = journal_identity(directory)
        self._live_from = end_offset(directory)
        self._offset = earliest_offset(directory)
        self._lacks_beginning = not is_complete(directory)
        self._read_to_its_end: tuple[object, ...] | None = None  # the journal's appearance then

    @property
    def caught_up(self) -> bool:
        return self._offset >= self._live_from

    def reaches(self, identity: str, offset: int) -> bool:
        return self._identity == identity and self._offset >= offset

    def read(self) -> Chunk | None:
        """Return the next rows, None at the end. Most looks find the journal as it was at its end, and read nothing."""
        looks = appearance(self._directory)
        if looks is not None and looks == self._read_to_its_end:
            return None
        chunk = self._next_chunk()
        self._read_to_its_end = looks if chunk is None else None
        return chunk

    def _next_chunk(self) -> Chunk | None:
        begun, begins_anew, lost = self._offset, self._is_another(), self._lacks_beginning
        try:
            batch = self._batch(earliest_offset(self._directory) if begins_anew else begun)
        except OffsetGoneError as error:
            # Read the compacted part again. It has all current rows.
            lost, begins_anew = True, begins_anew or is_complete(self._directory)
            batch = self._batch(error.earliest)
        except ForeignOffsetError:
            begins_anew = True
            batch = self._batch(earliest_offset(self._directory))
        lost = lost or batch.hole is not None
        self._offset, self._lacks_beginning = batch.next_offset, False
        if begins_anew:
            self._live_from = end_offset(self._directory)
        elif self._offset == begun and not lost:
            return None
        return Chunk(
            output=self.output,
            lines=batch.lines,
            live=not begins_anew and begun >= self._live_from,
            after_gap=lost,
            thinned=batch.compacted,
            begins_anew=begins_anew,
        )

    def _batch(self, offset: int) -> JournalBatch:
        batch = read_journal(self._directory, offset, _READ_BYTES)
        if batch.hole is not None:
            _logger.error("rows of output %s are lost: %s", self.output, batch.hole)
        return batch

    def _is_another(self) -> bool:
        """Return whether the journal was replaced since it was read last."""
        before, now = self._identity, journal_identity(self._directory)
        self._identity = now or before
        return bool(before and now) and before != now


class JournalSource(OutputsSource):
    """Reader of `DIRECTORY/<output>`. A journal that does not exist yet counts as empty."""

    def __init__(self, directory: Path, wanted: Sequence[str]) -> None:
        self._directory = directory
        self.wanted = tuple(wanted)
        self._journals: tuple[_FollowedJournal, ...] = ()
        self.missing: tuple[str, ...] = ()
        self._is_cut = False

    def has_read(self, outputs: Collection[str]) -> bool:
        """Return whether all rows of these outputs that existed at the first poll have been returned."""
        return bool(self._journals) and all(each.caught_up for each in self._journals if each.output in outputs)

    def lacking(self, ends: Mapping[str, tuple[str, int]]) -> tuple[str, ...]:
        """Return the outputs that do not reach these ends, none while a long backlog is only partly read."""
        if self._is_cut:
            return ()
        ended = [(journal, ends[journal.output]) for journal in self._journals if journal.output in ends]
        return tuple(journal.output for journal, end in ended if not journal.reaches(*end))

    def poll(self) -> Sequence[Chunk]:
        """Return the new rows, or a part if there are many. Read an output to its end before the next output."""
        try:
            if not self._journals:
                self._open()
            elif self.missing:
                self._look()
            return self._read()
        except NewerJournalError as error:
            raise OutputsError(str(error)) from error
        except JournalError as error:
            raise SourceDownError(str(error)) from error
        except OSError as error:
            raise SourceDownError(f"the outputs in {self._directory} cannot be read: {error.strerror}") from error

    def _open(self) -> None:
        self._look()
        if self.missing:
            _logger.warning(
                "%s holds no %s yet. Waiting for `kontrast stream` to write the missing outputs. "
                "Check the address if it runs",
                self._directory,
                ", ".join(self.missing),
            )
        self._journals = tuple(_FollowedJournal(self._directory / output, output) for output in self.wanted)

    def _look(self) -> None:
        self.missing = tuple(output for output in self.wanted if not os.path.exists(f"{self._directory}/{output}"))

    def _read(self) -> list[Chunk]:
        chunks: list[Chunk] = []
        for journal in self._journals:
            news = list(islice(iter(journal.read, None), _CHUNKS_OF_ONE_OUTPUT))
            chunks += news
            self._is_cut = len(news) == _CHUNKS_OF_ONE_OUTPUT
            if self._is_cut:
                break
        return chunks

    def close(self) -> None:
        """Do nothing. Files are closed between two polls."""
