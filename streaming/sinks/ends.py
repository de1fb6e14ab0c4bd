"""Ends of the outputs' journals, by which each output proves that it has all rows before the next batch."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from controller.contract.job_row import JobRow, OutputEnd
from controller.contract.outputs import OUTPUTS, BadRowError, decode_row
from streaming.checkpoint.directory import REBUILD
from streaming.errors import StreamError
from transport.journal import JournalWriter
from transport.segments import newest_lines

Writers = Mapping[str, JournalWriter]
Ends = dict[str, OutputEnd]


def ends_of(writers: Writers) -> Ends:
    """Return the present end of each output except `job`, because the row of the job contains these ends."""
    return {
        output: OutputEnd(identity=writers[output].identity, offset=writers[output].end_offset) for output in OUTPUTS
    }


def stored_ends(directory: Path) -> Ends:
    """Return the ends in the newest row of the job. An older Kontrast stored no ends."""
    for line in newest_lines(directory / JobRow.output, b"{"):
        try:
            row = decode_row(line)
        except BadRowError:
            continue
        if isinstance(row, JobRow):
            return row.ends
    return {}


def require_rows(directory: Path, writers: Writers, stored: Mapping[str, OutputEnd], batch: int) -> None:
    """Raise StreamError if an output lacks rows of a batch before this one, which the checkpoint counts as done."""
    # The job's journal has a mark of every batch. The other journals have no mark of a batch without their rows.
    lacking = [JobRow.output] if writers[JobRow.output].last_batch_id < batch - 1 else []
    for output, end in stored.items():
        writer = writers.get(output)
        if writer is not None and (writer.identity != end.identity or writer.end_offset < end.offset):
            lacking.append(output)
    if lacking:
        named = ", ".join(str(directory / output) for output in lacking)
        raise StreamError(
            f"{named} lost rows of batches before {batch}, with which the checkpoint continues. To continue, {REBUILD}"
        )
